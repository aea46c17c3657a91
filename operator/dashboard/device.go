package dashboard

import (
	"strings"

	"github.com/selvage/selvage/internal/words"
)

// A product is a browser or an operating system.
type product struct {
	pattern string // part of the User-Agent
	name    string
}

// browsers and systems list the specific patterns first: Edge also claims to be Chrome and Safari, and
// Android also claims to be Linux.
var (
	browsers = []product{
		{"Edg/", "Edge"},
		{"OPR/", "Opera"},
		{"Firefox/", "Firefox"},
		{"Chrome/", "Chrome"},
		{"Safari/", "Safari"},
		{"curl/", "curl"},
	}
	systems = []product{
		{"Android", "Android"},
		{"iPhone", "iPhone"},
		{"iPad", "iPad"},
		{"Windows", "Windows"},
		{"Mac OS X", "macOS"},
		{"CrOS", "ChromeOS"},
		{"Linux", "Linux"},
	}
)

// device describes the browser of a User-Agent in a few words.
func device(agent string) string {
	browser := findProduct(browsers, agent)
	system := findProduct(systems, agent)
	switch {
	case browser != "" && system != "":
		return words.Textf("%s on %s", browser, system)
	case browser != "":
		return browser
	case system != "":
		return system
	}
	return "A browser"
}

// findProduct returns the name of the first product whose pattern is in agent, or "".
func findProduct(products []product, agent string) string {
	for _, p := range products {
		if strings.Contains(agent, p.pattern) {
			return p.name
		}
	}
	return ""
}
