package brand

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	_ "image/jpeg" // decodes JPEG
	_ "image/png"  // decodes PNG
	"slices"

	_ "golang.org/x/image/webp" // decodes WebP

	"github.com/selvage/selvage/internal/problem"
)

// MaxUpload is the maximum size of an uploaded file, in bytes.
const MaxUpload = 1 << 20

const (
	// maxSide is the maximum width and height of an uploaded picture, in pixels.
	maxSide = 4096

	// maxMemory is how many bytes of memory decoding a picture may take. A file of a few kilobytes
	// could otherwise decompress to gigabytes. The formats need different numbers of bytes per pixel,
	// so each has its own maximum number of pixels; see kindOf.
	maxMemory = 4 << 20

	// maxScans is the maximum number of scans in a JPEG. A scan may be only a few bytes long, but
	// decoding it visits every block. Most files have about a dozen scans. The count includes bytes
	// that look like the start of a scan by chance.
	maxScans = 20
)

// checkHeader returns an error if the format of a picture is not supported, or if decoding it would
// cost too much.
func checkHeader(param string, raw []byte) error {
	config, format, err := image.DecodeConfig(bytes.NewReader(raw))
	if err != nil || !slices.Contains([]string{"png", "jpeg", "webp"}, format) {
		return problem.BadParam(param, "%s must be a PNG, JPEG or WebP image", param)
	}

	w, h := config.Width, config.Height
	if w < 1 || h < 1 || w > maxSide || h > maxSide {
		return problem.BadParam(param, "%s has %d by %d pixels; each side must be at most %d", param, w, h, maxSide)
	}

	k := kindOf(raw, format, config.ColorModel)
	if maxPixels := maxMemory / k.bytesPerPixel; w*h > maxPixels {
		return problem.BadParam(param, "%s has %d by %d pixels; %s may have %d in all", param, w, h, k.name, maxPixels)
	}

	if format == "jpeg" && bytes.Count(raw, []byte{0xff, startOfScan}) > maxScans {
		return problem.BadParam(param, "%s has too many scans; save it as a baseline JPEG", param)
	}
	return nil
}

// A kind is a kind of picture that has its own limit on pixels.
type kind struct {
	name          string // for error messages
	bytesPerPixel int    // how much of maxMemory a pixel uses up
}

// The kinds of pictures. For kinds whose decoder is slow or needs further memory, bytesPerPixel is
// larger than the memory for the pixel itself.
var (
	ordinary = kind{name: "a picture", bytesPerPixel: 4}

	// A pixel has up to four colors of 2 bytes: 8 bytes. Decoding takes twice the usual time.
	deep = kind{name: "one with 16 bits per color", bytesPerPixel: 16}

	// The decoder keeps three coefficients of 4 bytes until the last scan, and then adds three
	// colors: 15 bytes.
	progressive = kind{name: "a progressive JPEG", bytesPerPixel: 20}

	// The decoder writes four colors, and then copies them: 8 bytes. If the JPEG is progressive, it
	// also keeps four coefficients of 4 bytes: 24 bytes.
	cmyk = kind{name: "a JPEG in CMYK", bytesPerPixel: 32}

	// The decoder writes four colors and, if there is a palette, copies them: 8 bytes. If only the
	// transparency is lossless, the decoder adds it and the lossy colors: 12 bytes.
	losslessWebP = kind{name: "a lossless or transparent WebP", bytesPerPixel: 16}
)

// kindOf returns the kind of a picture, given its file, its format and its color model.
func kindOf(raw []byte, format string, model color.Model) kind {
	switch {
	case model == color.NRGBA64Model, model == color.RGBA64Model, model == color.Gray16Model:
		return deep
	case model == color.CMYKModel:
		return cmyk
	case format == "jpeg" && isProgressive(raw):
		return progressive
	case format == "webp" && !isLossyWebP(raw):
		return losslessWebP
	}
	return ordinary
}

// isLossyWebP reports whether a WebP is lossy and has no transparency. The name of its first chunk,
// which follows 12 bytes of header, is then "VP8 ". Others begin with a VP8L or VP8X chunk.
func isLossyWebP(raw []byte) bool {
	if len(raw) <= 16 {
		return true // the file is too short to be decoded
	}
	return string(raw[12:16]) == "VP8 "
}

// The second bytes of the JPEG markers that checks look for. The first byte is 0xff (ITU-T T.81,
// B.1.1.3).
const (
	progressiveFrame = 0xc2 // SOF2
	startOfScan      = 0xda // SOS
)

// isProgressive reports whether a JPEG is progressive, which means that a marker for a progressive
// frame comes before the first scan.
func isProgressive(raw []byte) bool {
	rest := raw[min(2, len(raw)):] // after the marker that begins the file
	for len(rest) >= 4 && rest[0] == 0xff {
		skip := 0
		switch rest[1] {
		case progressiveFrame:
			return true
		case startOfScan:
			return false
		case 0xff: // rest[0] is a fill byte before the marker
			skip = 1
		default: // a segment: its marker, and its content, which begins with its own length
			skip = 2 + int(binary.BigEndian.Uint16(rest[2:]))
		}
		rest = rest[min(skip, len(rest)):]
	}
	return false
}
