package templates

import (
	"bytes"
	"html/template"

	"github.com/selvage/selvage/internal/words"
)

// A View is how somebody is shown a page: what is not of the page itself.
type View struct {
	Theme string       // "light" or "dark"; "" is as the browser prefers
	Words *words.Words // its language; nil is English
	Back  string       // where the page is had again in another language; "" for no choice of one
	Brand Brand
}

// A Brand is whose a page is, beside the name in it.
type Brand struct {
	Name           string // of the app; "" where there is none
	Color          string // six hexadecimal digits, or "" for ours
	Logo           Picture
	Terms, Privacy string // addresses; "" for none
}

// A Picture is a logo as it is shown; the zero value is none.
type Picture struct {
	URL        string
	Wide, High int
	Plate      string // "l" or "d": it needs a ground behind it on light, or on dark, pages
}

// A framed is a page in the frame that all have which are no documents of their own.
type framed struct {
	View
	Title, Body template.HTML
}

// render writes a page, in its frame if it has a title of its own to be put there.
func render(body *bytes.Buffer, p Page, v View) error {
	if d, ok := p.(Dashboard); ok {
		return dashboard().ExecuteTemplate(body, d.name(), d)
	}
	if v.Words == nil {
		v.Words = words.English()
	}
	set := parsed()[v.Words]()
	title := set.Lookup(p.name()[:len(p.name())-len("html")] + "title")
	if title == nil {
		return set.ExecuteTemplate(body, p.name(), p)
	}
	var called, inner bytes.Buffer
	if err := title.Execute(&called, p); err != nil {
		return err
	}
	if err := set.ExecuteTemplate(&inner, p.name(), p); err != nil {
		return err
	}
	f := framed{View: v, Title: template.HTML(called.String()),
		Body: template.HTML(inner.String())} // what html/template has made
	return set.ExecuteTemplate(body, "frame", f)
}
