package templates

import (
	"bytes"
	"html/template"
	"strings"

	"github.com/selvage/selvage/internal/brand"
	"github.com/selvage/selvage/internal/words"
)

// A View is how a page is shown: everything except the page's own content.
type View struct {
	Theme string       // "light" or "dark"; "" means the browser's preference
	Words *words.Words // the language; nil means English
	Back  string       // the URL to return to after changing the language; "" hides that choice
	Brand Brand
}

// A Brand is the branding of a page: the name, color and logo of the app that the page belongs to.
type Brand struct {
	Name           string // name of the app; may be ""
	Color          string // six hexadecimal digits, or "" for the default
	Logo           Picture
	DarkLogo       Picture // shown on dark pages instead of Logo; the zero value means Logo
	Terms, Privacy string  // URLs; may be ""
}

// A Picture is a logo to show; the zero value means none. Its URL is a path on this server, or
// a data URL with a picture that this server drew.
type Picture struct {
	URL        template.URL
	Wide, High int
	Plate      string // "l" or "d": the theme in which it needs a background
}

// PictureOf returns the picture of the logo with the given name, or the zero value if there is none.
func PictureOf(name string) Picture {
	shown, ok := brand.ParseLogo(name)
	if !ok {
		return Picture{}
	}
	return Picture{
		URL:   template.URL("/brand/logo/" + shown.Name + ".png"),
		Wide:  shown.Wide,
		High:  shown.High,
		Plate: shown.Plate,
	}
}

// forTheme returns b with only the logo of a chosen theme. If no theme was chosen, b keeps both
// logos, and the browser's preference decides between them.
func (b Brand) forTheme(theme string) Brand {
	if theme == "dark" && b.DarkLogo.URL != "" {
		b.Logo = b.DarkLogo
	}
	if theme != "" {
		b.DarkLogo = Picture{}
	}
	return b
}

// plates returns the themes in which the shown logo needs a background: "l", "d", both or neither.
func (b Brand) plates() string {
	if b.DarkLogo.URL == "" {
		return b.Logo.Plate
	}
	var plates []string
	if b.Logo.Plate == "l" {
		plates = append(plates, "l")
	}
	if b.DarkLogo.Plate == "d" {
		plates = append(plates, "d")
	}
	return strings.Join(plates, " ")
}

// A framed is a page inside the common frame. It is used for pages that are not complete documents.
type framed struct {
	View
	Title, Body template.HTML
}

// render writes a page, inside the frame if the page has a title template.
func render(body *bytes.Buffer, p Page, v View) error {
	if d, ok := p.(Dashboard); ok {
		if d.Words == nil {
			d.Words = words.English()
		}
		return dashboard()[d.Words]().ExecuteTemplate(body, d.name(), d)
	}

	if v.Words == nil {
		v.Words = words.English()
	}
	v.Brand = v.Brand.forTheme(v.Theme)

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

	// Title and body are safe, because html/template has escaped them.
	f := framed{View: v, Title: template.HTML(called.String()), Body: template.HTML(inner.String())}
	return set.ExecuteTemplate(body, "frame", f)
}
