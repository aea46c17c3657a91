package brand

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
