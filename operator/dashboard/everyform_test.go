package dashboard_test

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// A shownForm is a form with the method POST on one of the dashboard's pages.
type shownForm struct {
	page   string // path of the page
	action string
	node   *html.Node
	fields []*html.Node // includes fields outside of the form element
	isFile bool         // the form can upload a file
}

// everyForm returns the forms of all pages that b can open, one for each action. New pages and forms
// are included automatically.
func (b browser) everyForm(ids *strings.Replacer) (all []shownForm) {
	b.Helper()
	seen := make(map[string]bool)
	for _, route := range b.api.Routes() {
		pattern, ok := strings.CutPrefix(route, "GET ")
		if !ok || openRoutes[route] || strings.HasSuffix(pattern, "/preview") || strings.HasSuffix(pattern, "/live") {
			continue
		}
		path := ids.Replace(pattern)
		shown := b.get(path)
		if shown.StatusCode != http.StatusOK || !strings.HasPrefix(shown.Header.Get("Content-Type"), "text/html") {
			continue
		}
		for _, f := range formsOf(b, path, shown) {
			if !seen[f.action] {
				seen[f.action], all = true, append(all, f)
			}
		}
	}
	return all
}

// formsOf returns the forms of a page with the method POST. A form with a button that submits to
// another URL is returned once more for this button, unless the button shows a preview.
func formsOf(t testing.TB, path string, shown answer) (all []shownForm) {
	t.Helper()
	page, err := html.Parse(strings.NewReader(shown.body))
	must(t, err)
	for _, n := range elements(page, func(n *html.Node) bool { return n.Data == "form" }) {
		if attribute(n, "method") != "post" {
			continue
		}
		outside := func(e *html.Node) bool {
			return isField(e) && attribute(n, "id") != "" && attribute(e, "form") == attribute(n, "id")
		}
		f := shownForm{
			page:   path,
			action: attribute(n, "action"),
			node:   n,
			fields: append(elements(n, isField), elements(page, outside)...),
			isFile: attribute(n, "enctype") == "multipart/form-data",
		}
		all = append(all, f)

		for _, button := range elements(n, func(e *html.Node) bool { return has(e, "formaction") }) {
			if f.action = attribute(button, "formaction"); !strings.HasSuffix(f.action, "/preview") {
				all = append(all, f)
			}
		}
	}
	return all
}

// find returns the element with this id, or nil.
func find(root *html.Node, id string) *html.Node {
	found := elements(root, func(n *html.Node) bool { return attribute(n, "id") == id })
	if len(found) == 0 {
		return nil
	}
	return found[0]
}

// has reports whether an element has an attribute, such as "checked".
func has(n *html.Node, name string) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name })
}

// textOf returns the text below n.
func textOf(n *html.Node) string {
	var text strings.Builder
	for below := range n.Descendants() {
		if below.Type == html.TextNode {
			text.WriteString(below.Data)
		}
	}
	return text.String()
}

// untouched returns what a browser sends for a form that nobody edited.
func (f shownForm) untouched() url.Values {
	sent := url.Values{}
	for _, n := range f.fields {
		name, kind := attribute(n, "name"), attribute(n, "type")
		switch {
		case kind == "file":
		case kind == "checkbox", kind == "radio":
			if has(n, "checked") {
				sent.Add(name, attribute(n, "value"))
			}
		case n.Data == "select":
			sent.Add(name, chosenOption(n))
		case n.Data == "textarea":
			sent.Add(name, strings.TrimPrefix(textOf(n), "\n"))
		default:
			sent.Add(name, attribute(n, "value"))
		}
	}
	return sent
}

// chosenOption returns the value of a list's selected option or, if none is selected, of its first
// option.
func chosenOption(list *html.Node) string {
	options := elements(list, func(o *html.Node) bool { return o.Data == "option" })
	for _, option := range options {
		if has(option, "selected") {
			return optionValue(option)
		}
	}
	if len(options) == 0 {
		return ""
	}
	return optionValue(options[0])
}

// optionValue returns what a form sends for an option.
func optionValue(o *html.Node) string {
	if has(o, "value") {
		return attribute(o, "value")
	}
	return textOf(o)
}

// submit returns the request that sends a form. The form that uploads recordings sends one. Other
// forms that can upload a file send none.
func (b browser) submit(f shownForm, sent url.Values) *http.Request {
	b.Helper()
	if !f.isFile {
		r := b.request("POST", f.action, sent)
		r.Header.Set("Referer", b.url+f.page)
		return r
	}

	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	must(b, w.SetBoundary("a-boundary-of-the-same-length"))
	must(b, w.WriteField("form", sent.Get("form"))) // before the file
	for name, values := range sent {
		if name == "form" {
			continue
		}
		for _, value := range values {
			must(b, w.WriteField(name, value))
		}
	}
	if strings.HasSuffix(f.action, "/recordings") {
		wav, err := os.ReadFile("../../cmd/selvage/internal/demo/welcome.wav")
		must(b, err)
		part, err := w.CreateFormFile("file", "welcome.wav")
		must(b, err)
		_, err = part.Write(wav)
		must(b, err)
	}
	must(b, w.Close())
	r, err := http.NewRequest("POST", b.url+f.action, &body)
	must(b, err)
	r.Header.Set("Content-Type", w.FormDataContentType())
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Header.Set("Referer", b.url+f.page)
	return r
}
