package brand

import (
	"image"
	"math"
)

// The values of ShownLogo.Plate, a background that a transparent logo needs to be visible. Names of
// logos, templates and style sheets contain these letters.
const (
	noPlate    = ""
	lightPlate = "l" // the logo needs a background on light pages
	darkPlate  = "d" // the logo needs a background on dark pages
)

// readable is the contrast below which a transparent picture needs a background. WCAG 2.2 requires
// 3 for graphics, but the mean color is only an estimate.
const readable = 2

// plateOf returns the plate that a picture needs.
func plateOf(p *image.NRGBA) string {
	if p.Opaque() {
		return noPlate
	}
	visible, ok := meanColor(p)
	switch {
	case !ok:
		return noPlate
	case ReadOnDark(visible) < readable:
		return darkPlate
	case ReadOnLight(visible) < readable:
		return lightPlate
	}
	return noPlate
}

// meanColor returns the mean color of a picture. Each pixel is weighted by its opacity. ok is false
// if all pixels are transparent.
func meanColor(p *image.NRGBA) (c Color, ok bool) {
	var r, g, b, opacity float64
	for i := 0; i < len(p.Pix); i += 4 {
		alpha := float64(p.Pix[i+3])
		r += alpha * float64(p.Pix[i])
		g += alpha * float64(p.Pix[i+1])
		b += alpha * float64(p.Pix[i+2])
		opacity += alpha
	}
	if opacity == 0 {
		return Color{}, false
	}
	return Color{
		r: math.Floor(r / opacity),
		g: math.Floor(g / opacity),
		b: math.Floor(b / opacity),
	}, true
}
