package templates

import (
	"bytes"
	"html/template"
)

// A View is how somebody is shown a page: what is not of the page itself.
type View struct {
	Theme string // "light" or "dark"; "" is as the browser prefers
}

// A framed is a page in the frame that all have which are no documents of their own.
type framed struct {
	View
	Title, Body template.HTML
}

// render writes a page, in its frame if it has a title of its own to be put there.
func render(body *bytes.Buffer, p Page, v View) error {
	if d, ok := p.(Dashboard); ok {
		return dashboard.ExecuteTemplate(body, d.name(), d)
	}
	title := parsed.Lookup(p.name()[:len(p.name())-len("html")] + "title")
	if title == nil {
		return parsed.ExecuteTemplate(body, p.name(), p)
	}
	var called, inner bytes.Buffer
	if err := title.Execute(&called, p); err != nil {
		return err
	}
	if err := parsed.ExecuteTemplate(&inner, p.name(), p); err != nil {
		return err
	}
	f := framed{View: v, Title: template.HTML(called.String()), Body: template.HTML(inner.String())} // what html/template has made
	return parsed.ExecuteTemplate(body, "frame", f)
}
