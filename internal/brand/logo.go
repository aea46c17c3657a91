// Package brand prepares the logo and the color of a project or client for pages and emails.
//
// An uploaded picture is redrawn as a small PNG, so that nothing of the uploaded file survives except its
// pixels. A chosen color is adjusted so that text in this color, and text on it, is readable in both
// themes (WCAG 2.2, contrast minimum).
package brand

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"image"
	"image/png"
	"math"
	"regexp"
	"strconv"

	"github.com/selvage/selvage/internal/problem"
)

// Limits of the logos that are stored.
const (
	// maxWidth and maxHeight are in pixels. Pages show logos at half this size, so that they are sharp
	// on high-density screens.
	maxWidth  = 400
	maxHeight = 96

	maxFile = 12 << 10 // bytes of the PNG; small, so that the sign-in page loads fast
)

// A Logo is a picture that pages and emails show. The zero value means no logo.
type Logo struct {
	Name string // derived from the content, so that it can be cached forever
	PNG  []byte
}

// decoding is full while a picture is being decoded. Only one picture is decoded at a time, to limit the
// use of memory and CPU.
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

// encode encodes a picture as a logo. If the file is larger than maxFile, as it can be for a photograph,
// encode shrinks the picture until the file fits.
func encode(picture *image.NRGBA) (Logo, error) {
	encoder := png.Encoder{CompressionLevel: png.BestCompression, BufferPool: &buffer{}}
	drawn, scale := picture, 1.0
	var file bytes.Buffer
	for {
		file.Reset()
		if err := encoder.Encode(&file, drawn); err != nil {
			return Logo{}, fmt.Errorf("encoding logo: %w", err)
		}
		if file.Len() <= maxFile {
			break
		}
		// The size of the file is roughly proportional to the number of pixels.
		scale *= min(0.85, 0.95*math.Sqrt(maxFile/float64(file.Len())))
		drawn = redraw(picture, scale)
	}

	sum := sha256.Sum256(file.Bytes())
	digest := hex.EncodeToString(sum[:16])
	size := drawn.Bounds().Size()
	name := fmt.Sprintf("%s-%dx%d%s", digest, size.X, size.Y, plateOf(drawn))
	return Logo{Name: name, PNG: file.Bytes()}, nil
}

// A buffer is the memory that a PNG encoder reuses from one picture to the next.
type buffer struct{ kept *png.EncoderBuffer }

func (b *buffer) Get() *png.EncoderBuffer     { return b.kept }
func (b *buffer) Put(used *png.EncoderBuffer) { b.kept = used }

// A ShownLogo describes how pages show a logo.
type ShownLogo struct {
	Name       string
	Wide, High int    // in CSS pixels
	Plate      string // "l" or "d" if the logo needs a background on light or dark pages; otherwise ""
}

// logoSyntax matches the names that encode makes: a digest, the size of the PNG, and the plate.
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

	scale := min(1, maxWidth/2/float64(w), maxHeight/2/float64(h))
	return ShownLogo{
		Name:  name,
		Wide:  max(1, int(float64(w)*scale)),
		High:  max(1, int(float64(h)*scale)),
		Plate: m[3],
	}, true
}
