// Package logo makes of a picture that somebody uploads one that pages and mails show: a
// small PNG, drawn anew, so that nothing of the file goes on but its pixels.
package logo

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"image"
	"image/color"
	_ "image/jpeg" // read
	"image/png"
	"regexp"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/image/draw"
	_ "golang.org/x/image/webp" // read

	"github.com/selvage/selvage/internal/palette"
	"github.com/selvage/selvage/internal/problem"
)

// What is taken, and what is kept of it.
const (
	MaxUpload = 1 << 20 // of the file

	maxSide   = 4096    // of what is read, in pixels
	maxPixels = 4 << 20 // of it altogether: a picture of a few kilobytes may unfold to gigabytes
	maxScans  = 100     // of a JPEG: each goes over all its blocks for a few bytes; files have a dozen, and chance makes some
	wide      = 400     // of what is kept: twice what is shown, for fine screens
	high      = 96
	maxKept   = 12 << 10 // of the PNG: sign-in stays light
)

// A Logo is a picture that may be shown. The zero value is none.
type Logo struct {
	Name string // of its content: it may be kept for ever by it
	PNG  []byte
}

// one keeps many who upload at once from taking the memory of as many pictures.
var one sync.Mutex

// Make draws a picture anew. SVG is refused: it is a document that may have scripts.
func Make(param string, raw []byte) (Logo, error) {
	bad := func(format string, args ...any) (Logo, error) {
		return Logo{}, problem.BadParam(param, format, args...)
	}
	if len(raw) > MaxUpload {
		return bad("%s must have at most %d kB", param, MaxUpload>>10)
	}
	one.Lock()
	defer one.Unlock()
	config, format, err := image.DecodeConfig(bytes.NewReader(raw))
	if err != nil || !slices.Contains([]string{"png", "jpeg", "webp"}, format) {
		return bad("%s must be a PNG, JPEG or WebP picture", param)
	}
	if config.Width < 1 || config.Height < 1 || config.Width > maxSide || config.Height > maxSide ||
		config.Width*config.Height > maxPixels {
		return bad("%s has %d by %d pixels; each side must be at most %d, and all at most four million",
			param, config.Width, config.Height, maxSide)
	}
	if format == "jpeg" && bytes.Count(raw, []byte{0xff, 0xda}) > maxScans {
		return bad("%s has too many scans; save it as a plain JPEG", param)
	}
	from, _, err := image.Decode(bytes.NewReader(raw))
	if err != nil {
		return bad("%s is damaged, or is cut off", param)
	}
	scale := min(1, float64(wide)/float64(from.Bounds().Dx()), float64(high)/float64(from.Bounds().Dy()))
	for {
		drawn := redraw(from, scale)
		var out bytes.Buffer
		if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, drawn); err != nil {
			return Logo{}, fmt.Errorf("writing logo: %w", err)
		}
		if out.Len() > maxKept {
			scale *= 0.85 // a photograph: what shows little weighs much
			continue
		}
		sum := sha256.Sum256(out.Bytes())
		return Logo{fmt.Sprintf("%s-%dx%d%s", hex.EncodeToString(sum[:16]), drawn.Bounds().Dx(),
			drawn.Bounds().Dy(), plate(drawn)), out.Bytes()}, nil
	}
}

// redraw draws a picture smaller.
func redraw(from image.Image, scale float64) *image.NRGBA {
	size := from.Bounds().Size()
	to := image.NewNRGBA(image.Rect(0, 0, max(1, int(float64(size.X)*scale+0.5)),
		max(1, int(float64(size.Y)*scale+0.5))))
	draw.CatmullRom.Scale(to, to.Bounds(), from, from.Bounds(), draw.Src, nil)
	return to
}

// readable is the contrast below which a picture without a ground is lost on a page
// (WCAG 2.2 asks 3 of graphics; a mean is not that exact).
const readable = 2

// plate says on which pages a picture that one can see through needs a ground behind it:
// "l" on light ones, "d" on dark ones, "" on none.
func plate(p *image.NRGBA) string {
	if p.Opaque() {
		return ""
	}
	var r, g, b, all float64
	for i := 0; i < len(p.Pix); i += 4 {
		a := float64(p.Pix[i+3])
		r, g, b, all = r+a*float64(p.Pix[i]), g+a*float64(p.Pix[i+1]), b+a*float64(p.Pix[i+2]), all+a
	}
	if all == 0 {
		return ""
	}
	mean := palette.Of(color.NRGBA{R: uint8(r / all), G: uint8(g / all), B: uint8(b / all)})
	switch {
	case palette.ReadOnDark(mean) < readable:
		return "d"
	case palette.ReadOnLight(mean) < readable:
		return "l"
	}
	return ""
}

// A Shown is how pages show a logo.
type Shown struct {
	Name       string
	Wide, High int    // as it is shown
	Plate      string // "l", "d" or "": where it needs a ground behind it
}

var syntax = regexp.MustCompile(`^[0-9a-f]{32}-([0-9]{1,3})x([0-9]{1,3})([ld]?)$`)

// Parse reads the name of a logo. Nothing else may be asked for.
func Parse(name string) (s Shown, ok bool) {
	m := syntax.FindStringSubmatch(name)
	if m == nil {
		return s, false
	}
	w, _ := strconv.Atoi(m[1]) // at most three digits
	h, _ := strconv.Atoi(m[2])
	if w == 0 || h == 0 {
		return s, false
	}
	scale := min(1, wide/2/float64(w), high/2/float64(h))
	return Shown{name, max(1, int(float64(w)*scale)), max(1, int(float64(h)*scale)), m[3]}, true
}
