// Package brand prepares the logo and the color of a project or client for pages and emails.
//
// An uploaded picture is redrawn as a small PNG, so that only the pixels of the uploaded file
// survive. A chosen color is adjusted so that text in it, and on it, is readable in both themes
// (WCAG 2.2, contrast minimum).
package brand

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"image"
	"image/color"
	_ "image/jpeg" // decodes JPEG
	"image/png"
	"math"
	"regexp"
	"slices"
	"strconv"

	"golang.org/x/image/draw"
	_ "golang.org/x/image/webp" // decodes WebP

	"github.com/selvage/selvage/internal/problem"
)

// Limits of the uploaded file and the stored logo.
const (
	MaxUpload = 1 << 20 // bytes of the file

	maxSide = 4096 // pixels on each side of the uploaded picture
	// maxPixels is the maximum number of pixels in total, since a few kilobytes may decompress to
	// gigabytes. Decoding takes 4 bytes per pixel, so at most 4 MiB. For formats that take more,
	// see pixelLimit.
	maxPixels = 1 << 20
	// maxScans is the maximum number of scans in a JPEG. A scan may be only a few bytes long, but
	// decoding it visits every block. Most files have about a dozen scans. The count includes bytes
	// that look like the start of a scan by chance.
	maxScans = 20
	wide     = 400 // width of the logo in pixels: twice its width on pages, for high-density screens
	high     = 96
	maxKept  = 12 << 10 // bytes of the PNG, limited so that the sign-in page loads fast
)

// A Logo is a picture that pages and emails show. The zero value means no logo.
type Logo struct {
	Name string // derived from the content, so that it can be cached forever
	PNG  []byte
}

// A Theme is the color theme of the pages that show a logo.
type Theme string

// The possible themes. Emails contain the logo for light pages.
const (
	Light Theme = "light"
	Dark  Theme = "dark"
)

// Themes lists all themes.
var Themes = []Theme{Light, Dark}

// Logos are logos to set. A zero value removes the logo for its theme; the logos for missing themes
// are left unchanged.
type Logos map[Theme]Logo

// Param returns the name of the parameter that sets the logo for t.
func (t Theme) Param() string {
	if t == Dark {
		return "dark_logo"
	}
	return "logo"
}

// Pair returns the names of the logos that pages show, given the logos of a project or client. If
// only one logo is set, all pages show it, and forDark is "".
func Pair(light, dark string) (forAll, forDark string) {
	if light == "" {
		return dark, ""
	}
	return light, dark
}

// decoding limits memory and CPU use: only one picture is decoded at a time.
var decoding = make(chan struct{}, 1)

// MakeLogo redraws an uploaded picture. It refuses SVG, since SVG documents may contain scripts.
// While another picture is being decoded, MakeLogo waits, at most until ctx is done.
func MakeLogo(ctx context.Context, param string, raw []byte) (Logo, error) {
	if len(raw) > MaxUpload {
		return Logo{}, problem.BadParam(param, "%s must be at most %d KiB long", param, MaxUpload>>10)
	}

	select {
	case decoding <- struct{}{}:
		defer func() { <-decoding }()
	case <-ctx.Done():
		return Logo{}, fmt.Errorf("waiting for other pictures: %w", ctx.Err())
	}

	if err := checkHeader(param, raw); err != nil {
		return Logo{}, err
	}
	picture, _, err := image.Decode(bytes.NewReader(raw))
	if err != nil {
		return Logo{}, problem.BadParam(param, "%s is damaged or incomplete", param)
	}
	return encode(fit(picture))
}

// fit scales a picture down to the size of a logo.
func fit(picture image.Image) *image.NRGBA {
	size := picture.Bounds().Size()
	scale := min(1, float64(wide)/float64(size.X), float64(high)/float64(size.Y))
	if n := int(1 / scale); n > 1 {
		picture = shrink(picture, n)
		scale *= float64(n)
	}
	return redraw(picture, scale)
}

// encode returns the logo with a picture. Photographs can be too large, so encode shrinks the
// picture until the file fits.
func encode(picture *image.NRGBA) (Logo, error) {
	encoder := png.Encoder{CompressionLevel: png.BestCompression, BufferPool: &buffer{}}
	drawn, scale := picture, 1.0
	var file bytes.Buffer
	for {
		file.Reset()
		if err := encoder.Encode(&file, drawn); err != nil {
			return Logo{}, fmt.Errorf("encoding logo: %w", err)
		}
		if file.Len() <= maxKept {
			break
		}
		// The size of the file is roughly proportional to the number of pixels.
		scale *= min(0.85, 0.95*math.Sqrt(maxKept/float64(file.Len())))
		drawn = redraw(picture, scale)
	}

	sum := sha256.Sum256(file.Bytes())
	digest := hex.EncodeToString(sum[:16])
	size := drawn.Bounds().Size()
	name := fmt.Sprintf("%s-%dx%d%s", digest, size.X, size.Y, plate(drawn))
	return Logo{Name: name, PNG: file.Bytes()}, nil
}

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
	kind, limit := pixelLimit(raw, format, config.ColorModel)
	if w*h > limit {
		return problem.BadParam(param, "%s has %d by %d pixels; %s may have %d in all", param, w, h, kind, limit)
	}

	if format == "jpeg" && bytes.Count(raw, []byte{0xff, 0xda}) > maxScans {
		return problem.BadParam(param, "%s has too many scans; save it as a baseline JPEG", param)
	}
	return nil
}

// pixelLimit returns how many pixels a picture may have so that decoding it takes at most 4 MiB,
// and the name of this kind of picture.
func pixelLimit(raw []byte, format string, model color.Model) (kind string, limit int) {
	deep := []color.Model{color.NRGBA64Model, color.RGBA64Model, color.Gray16Model}
	switch {
	case slices.Contains(deep, model): // 8 bytes per pixel, and twice the time
		return "one with 16 bits a color", maxPixels / 4
	case model == color.CMYKModel: // 8 bytes per pixel, and 16 more if it is progressive
		return "a JPEG in CMYK", maxPixels / 8
	case format == "jpeg" && isProgressive(raw): // 15 bytes per pixel, since it is decoded in several passes
		return "a progressive JPEG", maxPixels / 5
	case format == "webp" && !isLossyWebP(raw):
		return "a lossless or transparent WebP", maxPixels / 4
	}
	return "a picture", maxPixels
}

// isLossyWebP reports whether a WebP is neither lossless nor has transparency. These have the chunks
// VP8L and VP8X.
func isLossyWebP(raw []byte) bool { return len(raw) <= 16 || string(raw[12:16]) == "VP8 " }

// isProgressive reports whether a JPEG is progressive, which means that it has an SOF2 marker
// before the first scan (ITU-T T.81, B.1.1.3).
func isProgressive(raw []byte) bool {
	const sof2, scan = 0xc2, 0xda
	rest := raw[min(2, len(raw)):] // after the marker that begins the file
	for len(rest) >= 4 && rest[0] == 0xff {
		skip := 0
		switch marker := rest[1]; marker {
		case sof2:
			return true
		case scan:
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

// A buffer is the memory that a PNG encoder reuses from one picture to the next.
type buffer struct{ kept *png.EncoderBuffer }

func (b *buffer) Get() *png.EncoderBuffer     { return b.kept }
func (b *buffer) Put(used *png.EncoderBuffer) { b.kept = used }

// shrink returns the picture at 1/n of its width and height. Each pixel is the mean of n by n
// pixels. For a large picture this costs much less than redraw.
func shrink(from image.Image, n int) *image.RGBA {
	b := from.Bounds()
	to := image.NewRGBA(image.Rect(0, 0, (b.Dx()+n-1)/n, (b.Dy()+n-1)/n))
	strip := image.NewRGBA(image.Rect(0, 0, b.Dx(), n)) // the rows of from that make one row of to
	for y := range to.Rect.Dy() {
		rows := min(n, b.Dy()-y*n)
		draw.Draw(strip, image.Rect(0, 0, b.Dx(), rows), from, b.Min.Add(image.Pt(0, y*n)), draw.Src)
		for x := range to.Rect.Dx() {
			columns := min(n, b.Dx()-x*n)
			block := image.Rect(x*n, 0, x*n+columns, rows)
			to.SetRGBA(x, y, mean(strip, block))
		}
	}
	return to
}

// mean returns the mean color of a block of a picture.
func mean(picture *image.RGBA, block image.Rectangle) color.RGBA {
	var r, g, b, a int
	for y := block.Min.Y; y < block.Max.Y; y++ {
		line := picture.Pix[picture.PixOffset(block.Min.X, y):][:4*block.Dx()]
		for i := 0; i < len(line); i += 4 {
			r += int(line[i])
			g += int(line[i+1])
			b += int(line[i+2])
			a += int(line[i+3])
		}
	}
	pixels := block.Dx() * block.Dy()
	return color.RGBA{R: uint8(r / pixels), G: uint8(g / pixels), B: uint8(b / pixels), A: uint8(a / pixels)}
}

// redraw returns the picture scaled down.
func redraw(from image.Image, scale float64) *image.NRGBA {
	size := from.Bounds().Size()
	width := max(1, int(float64(size.X)*scale+0.5))
	height := max(1, int(float64(size.Y)*scale+0.5))
	to := image.NewNRGBA(image.Rect(0, 0, width, height))
	draw.CatmullRom.Scale(to, to.Bounds(), from, from.Bounds(), draw.Src, nil)
	return to
}

// readable is the contrast below which a transparent picture needs a background. WCAG 2.2 requires
// 3 for graphics, but the mean color is only an estimate.
const readable = 2

// plate returns the theme in which a transparent picture needs a background: "l" for light, "d" for
// dark, or "" if it needs none.
func plate(p *image.NRGBA) string {
	if p.Opaque() {
		return ""
	}

	// The mean color is weighted: each pixel counts as much as it is opaque.
	var r, g, b, opacity float64
	for i := 0; i < len(p.Pix); i += 4 {
		alpha := float64(p.Pix[i+3])
		r += alpha * float64(p.Pix[i])
		g += alpha * float64(p.Pix[i+1])
		b += alpha * float64(p.Pix[i+2])
		opacity += alpha
	}
	if opacity == 0 {
		return ""
	}

	visible := Color{math.Floor(r / opacity), math.Floor(g / opacity), math.Floor(b / opacity)}
	switch {
	case ReadOnDark(visible) < readable:
		return "d"
	case ReadOnLight(visible) < readable:
		return "l"
	}
	return ""
}

// A ShownLogo describes how pages show a logo.
type ShownLogo struct {
	Name       string
	Wide, High int    // in CSS pixels
	Plate      string // the theme in which the logo needs a background: "l", "d" or ""
}

var logoSyntax = regexp.MustCompile(`^[0-9a-f]{32}-([0-9]{1,3})x([0-9]{1,3})([ld]?)$`)

// ParseLogo parses the name of a logo. ok is false if name has a different form.
func ParseLogo(name string) (logo ShownLogo, ok bool) {
	m := logoSyntax.FindStringSubmatch(name)
	if m == nil {
		return ShownLogo{}, false
	}

	w, _ := strconv.Atoi(m[1]) // at most three digits
	h, _ := strconv.Atoi(m[2])
	if w == 0 || h == 0 {
		return ShownLogo{}, false
	}

	scale := min(1, wide/2/float64(w), high/2/float64(h))
	return ShownLogo{
		Name:  name,
		Wide:  max(1, int(float64(w)*scale)),
		High:  max(1, int(float64(h)*scale)),
		Plate: m[3],
	}, true
}
