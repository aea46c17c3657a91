package brand

import (
	"fmt"
	"testing"
)

// TestContrast shows that in both themes, text in any color is readable on the page, and that text
// on a background of any color is readable, too.
func TestContrast(t *testing.T) {
	for rgb := 0; rgb < 1<<24; rgb += 0x10f07 {
		c, ok := ParseColor(fmt.Sprintf("%06x", rgb))
		if !ok {
			t.Fatalf("%06x is not accepted", rgb)
		}

		light, dark := OnLight(c), OnDark(c)
		for what, got := range map[string]float64{
			"in it on a light page": Contrast(light, lightGround),
			"in it on a dark page":  Contrast(dark, darkGround),
			"on it on a light page": Contrast(light, On(light)),
			"on it on a dark page":  Contrast(dark, On(dark)),
		} {
			if got < minContrast {
				t.Errorf("%s: text %s has a contrast of %.2f, want at least 4.5", c, what, got)
			}
		}
	}

	blue, _ := ParseColor("2f4b9b")
	if OnLight(blue) != blue {
		t.Errorf("%s, which is readable on a light page, becomes %s there", blue, OnLight(blue))
	}

	for _, bad := range []string{"", "#2f4b9b", "2F4B9B", "2f4b9", "2f4b9bb", "red", "../../x"} {
		if _, ok := ParseColor(bad); ok {
			t.Errorf("%q is accepted as a color", bad)
		}
	}
}
