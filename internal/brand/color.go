package brand

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
)

// A Color is an sRGB color with components from 0 to 255.
type Color struct{ r, g, b float64 }

// The backgrounds of pages, and the text colors used on a Color.
var (
	lightGround, darkGround = Color{0xfb, 0xfa, 0xf8}, Color{0x14, 0x14, 0x14}
	white, black            = Color{255, 255, 255}, Color{0x0b, 0x0c, 0x10}
)

// minContrast is the minimum contrast between text and its background.
const minContrast = 4.5

var colorSyntax = regexp.MustCompile(`^[0-9a-f]{6}$`)

// ParseColor parses a color of six lowercase hexadecimal digits.
func ParseColor(digits string) (c Color, ok bool) {
	if !colorSyntax.MatchString(digits) {
		return c, false
	}
	rgb, err := strconv.ParseUint(digits, 16, 32)
	return Color{float64(rgb >> 16), float64(rgb >> 8 & 0xff), float64(rgb & 0xff)}, err == nil
}

// String formats the color as #rrggbb.
func (c Color) String() string {
	return fmt.Sprintf("#%02x%02x%02x", uint8(math.Round(c.r)), uint8(math.Round(c.g)), uint8(math.Round(c.b)))
}

// luminance returns the relative luminance as defined in WCAG 2.2.
func (c Color) luminance() float64 {
	part := func(v float64) float64 {
		v /= 255
		if v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	return 0.2126*part(c.r) + 0.7152*part(c.g) + 0.0722*part(c.b)
}

// Contrast returns the contrast ratio of two colors, from 1 to 21.
func Contrast(a, b Color) float64 {
	x, y := a.luminance(), b.luminance()
	return (math.Max(x, y) + 0.05) / (math.Min(x, y) + 0.05)
}

// On returns the text color for a background: white or black, whichever has more contrast.
func On(c Color) Color {
	if Contrast(white, c) >= Contrast(black, c) {
		return white
	}
	return black
}

// OnLight returns c, darkened if necessary to be readable on a light page.
func OnLight(c Color) Color { return toward(c, Color{}, lightGround) }

// OnDark returns c, lightened if necessary to be readable on a dark page.
func OnDark(c Color) Color { return toward(c, Color{255, 255, 255}, darkGround) }

// toward mixes the color end into c until the result is readable as text on the color ground, and
// until text on the result is readable.
func toward(c, end, ground Color) Color {
	for mixed, part := c, 0.0; ; part += 0.02 {
		mixed = Color{c.r + (end.r-c.r)*part, c.g + (end.g-c.g)*part, c.b + (end.b-c.b)*part}
		isReadable := Contrast(mixed, ground) >= minContrast && Contrast(mixed, On(mixed)) >= minContrast
		if part >= 1 || isReadable {
			return mixed
		}
	}
}

// Sheet returns the style sheet that applies c to pages.
func Sheet(c Color) string {
	light, dark := OnLight(c), OnDark(c)
	return fmt.Sprintf(":root { --thread: light-dark(%s, %s); --thread-ink: light-dark(%s, %s); }\n",
		light, dark, On(light), On(dark))
}

// ReadOnLight returns the contrast between c and a light page.
func ReadOnLight(c Color) float64 { return Contrast(c, lightGround) }

// ReadOnDark returns the contrast between c and a dark page.
func ReadOnDark(c Color) float64 { return Contrast(c, darkGround) }
