package harness

import (
	"html"
	"net/url"
	"regexp"
	"strings"
)

// Regular expressions are enough to read the pages, because the pages are our own and simple.
var (
	formPattern = regexp.MustCompile(`(?is)<form\b([^>]*)>(.*?)</form>`)
	tagPattern  = regexp.MustCompile(`(?is)<(input|button)\b([^>]*)>`)
	attrPattern = regexp.MustCompile(`([\w:-]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?`)
)

// A form is a form on a page: its action, its method and the attributes of its controls.
type form struct {
	action, method string
	controls       []map[string]string
}

// Has reports whether the page has an element with the id.
func (p Page) Has(id string) bool {
	return regexp.MustCompile(`\bid="?` + regexp.QuoteMeta(id) + `["\s>]`).Match(p.Body)
}

// form returns the form that holds the control with the id.
func (p Page) form(t T, id string) form {
	t.Helper()
	for _, m := range formPattern.FindAllStringSubmatch(string(p.Body), -1) {
		attrs := attributes(m[1])

		f := form{action: attrs["action"], method: strings.ToLower(attrs["method"])}
		for _, tag := range tagPattern.FindAllStringSubmatch(m[2], -1) {
			f.controls = append(f.controls, attributes(tag[2]))
		}

		if f.control(id) != nil {
			return f
		}
	}
	t.Fatalf("no form with #%s on the page %s: %d %s", id, p.URL.Path, p.Status, clip(p.Body))
	return form{}
}

// control returns the control with the ID. If there is none, it returns the control without an ID
// that has this name.
func (f form) control(id string) map[string]string {
	for _, c := range f.controls {
		if c["id"] == id || c["id"] == "" && c["name"] == id {
			return c
		}
	}
	return nil
}

// fill returns the values that a browser posts when the button is pressed.
func (f form) fill(t T, button string, fields map[string]string) url.Values {
	t.Helper()
	v := url.Values{}
	for _, c := range f.controls {
		kind := strings.ToLower(c["type"])
		_, checked := c["checked"]
		switch {
		case c["name"] == "": // not posted
		case (kind == "submit" || kind == "button") && c["id"] != button: // not pressed
		case (kind == "checkbox" || kind == "radio") && !checked:
		default:
			v.Set(c["name"], c["value"])
		}
	}

	for id, value := range fields {
		c := f.control(id)
		if c == nil {
			t.Fatalf("the form has no #%s", id)
		}
		v.Set(c["name"], value)
	}
	return v
}

func attributes(s string) map[string]string {
	attrs := map[string]string{}
	for _, m := range attrPattern.FindAllStringSubmatch(s, -1) {
		attrs[strings.ToLower(m[1])] = html.UnescapeString(m[2] + m[3] + m[4])
	}
	return attrs
}

// Attribute returns an attribute of the element with the id.
func (p Page) Attribute(t T, id, name string) string {
	t.Helper()
	for _, m := range elementPattern.FindAllStringSubmatch(string(p.Body), -1) {
		if attrs := attributes(m[1]); attrs["id"] == id {
			return attrs[name]
		}
	}
	t.Fatalf("no element #%s on the page: %d %s", id, p.Status, clip(p.Body))
	return ""
}

var elementPattern = regexp.MustCompile(`(?is)<[a-z][a-z0-9]*\s([^>]*)>`)
