// Package palette makes of a colour that somebody chose one that text can be read in and
// on, in both themes (WCAG 2.2, contrast minimum).
package palette

import (
	"fmt"
	"image/color"
	"math"
	"regexp"
	"strconv"
)

// A Color is as CSS has it.
type Color struct{ r, g, b float64 }

// What pages have behind it, and what is written on it.
var (
	lightGround, darkGround = Color{0xfb, 0xfa, 0xf8}, Color{0x14, 0x14, 0x14}
	white, black            = Color{255, 255, 255}, Color{0x0b, 0x0c, 0x10}
)

// enough is the contrast of text.
const enough = 4.5

var syntax = regexp.MustCompile(`^[0-9a-f]{6}$`)

// Parse reads six small hexadecimal digits.
func Parse(digits string) (c Color, ok bool) {
	if !syntax.MatchString(digits) {
		return c, false
	}
	rgb, err := strconv.ParseUint(digits, 16, 32)
	return Color{float64(rgb >> 16), float64(rgb >> 8 & 0xff), float64(rgb & 0xff)}, err == nil
}

// String writes a colour.
func (c Color) String() string {
	return fmt.Sprintf("#%02x%02x%02x", uint8(math.Round(c.r)), uint8(math.Round(c.g)), uint8(math.Round(c.b)))
}

// luminance is that of WCAG 2.2.
func (c Color) luminance() float64 {
	part := func(v float64) float64 {
		if v /= 255; v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	return 0.2126*part(c.r) + 0.7152*part(c.g) + 0.0722*part(c.b)
}

// Contrast is that of two colours, from 1 to 21.
func Contrast(a, b Color) float64 {
	x, y := a.luminance(), b.luminance()
	return (math.Max(x, y) + 0.05) / (math.Min(x, y) + 0.05)
}

// On returns what is written on a colour: white or black, whichever is read better.
func On(c Color) Color {
	if Contrast(white, c) >= Contrast(black, c) {
		return white
	}
	return black
}

// OnLight returns the colour, darker if it must be to be read on a light page.
func OnLight(c Color) Color { return toward(c, Color{}, lightGround) }

// OnDark returns the colour, lighter if it must be to be read on a dark page.
func OnDark(c Color) Color { return toward(c, Color{255, 255, 255}, darkGround) }

// toward mixes an end into a colour until it is read on a ground, and what is written on it too.
func toward(c, end, ground Color) Color {
	for mixed, part := c, 0.0; ; part += 0.02 {
		mixed = Color{c.r + (end.r-c.r)*part, c.g + (end.g-c.g)*part, c.b + (end.b-c.b)*part}
		if part >= 1 || Contrast(mixed, ground) >= enough && Contrast(mixed, On(mixed)) >= enough {
			return mixed
		}
	}
}

// Sheet returns the style sheet by which pages have a colour.
func Sheet(c Color) string {
	light, dark := OnLight(c), OnDark(c)
	return fmt.Sprintf(":root { --thread: light-dark(%s, %s); --thread-ink: light-dark(%s, %s); }\n", light,
		dark, On(light), On(dark))
}

// Of returns a colour of a picture.
func Of(c color.NRGBA) Color { return Color{float64(c.R), float64(c.G), float64(c.B)} }

// ReadOnLight returns the contrast of a colour on a light page.
func ReadOnLight(c Color) float64 { return Contrast(c, lightGround) }

// ReadOnDark returns the contrast of a colour on a dark page.
func ReadOnDark(c Color) float64 { return Contrast(c, darkGround) }
