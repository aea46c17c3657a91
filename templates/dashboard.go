package templates

import (
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	template "github.com/DataDog/datadog-agent/pkg/template/html"

	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/static"
)

// A Dashboard is a page of the dashboard. It holds the frame that all pages share, the name of the
// page's file under pages/dashboard, and the data for that file.
type Dashboard struct {
	Frame
	Page string
	Data any
}

func (d Dashboard) name() string { return d.Page + ".html" }

// A Frame holds the data for the parts that all pages of the dashboard share.
type Frame struct {
	Title          string
	Words          *words.Words // the language
	Theme          string       // as in View
	Sheet          string       // the style sheet that the styles page shows; "" means the dashboard's
	Operator       string       // the operator signed in; "" before sign-in
	Project        string       // name of the selected project; "" for the installation
	Projects       []FrameLink
	MayMakeProject bool
	Nav            []FrameGroup
	Crumbs         []FrameLink // the pages above this one
	Search         string      // URL of the search
	FormToken      string      // sent back with each form
	Notice         string      // what was just done
	Now            time.Time
}

// A FrameGroup is a heading of the navigation with its links. The first group has no heading.
type FrameGroup struct {
	Title string
	Links []FrameLink
	Open  bool // whether its links are visible at first
}

// A FrameLink is a link in the navigation.
type FrameLink struct {
	Title, URL string
	Current    bool
	Named      bool // whether the title is a name that somebody chose, so it is not translated
}

// dashboard holds the templates of the dashboard for each language. They are separate from the
// templates of other pages, so that their blocks may have any name.
var dashboard = sync.OnceValue(func() map[*words.Words]func() *template.Template {
	return eachLanguage(func(w *words.Words) *template.Template {
		return parseIn(template.New("").Funcs(template.FuncMap{
			"passkeywords": func(kind, origin string) (string, error) { return passkeyWords(w, kind, origin) },
			"static":       static.URL, "iso": iso, "tr": w.Text, "clock": w.Format,
			"say": w.Say, "date": w.Date, "picture": picture,
			"ago":       func(now, at time.Time) string { return ago(w, now, at) },
			"prose":     prose,
			"day":       func(at time.Time) string { return day(w, at) },
			"themes":    func() []string { return []string{"light", "dark"} },
			"lang":      func() string { return w.Tag },
			"languages": words.All,
		}), w, "pages/dashboard/*.html", "pages/shared/*.html")
	})
})

// prose returns a text for people as HTML. It capitalizes the first word, unless that looks like
// code, adds a missing full stop, and makes apostrophes typographic. Text between backticks becomes
// code.
func prose(text string) template.HTML {
	if text == "" {
		return ""
	}
	if word, _, _ := strings.Cut(text, " "); !strings.ContainsAny(strings.TrimSuffix(word, "."), "._/:") {
		first, size := utf8.DecodeRuneInString(text)
		text = string(unicode.ToUpper(first)) + text[size:]
	}
	if !strings.ContainsAny(text[len(text)-1:], ".!?:") {
		text += "."
	}

	var b strings.Builder
	for i, part := range strings.Split(text, "`") {
		if i%2 == 1 {
			b.WriteString("<code>" + template.HTMLEscapeString(part) + "</code>")
			continue
		}
		b.WriteString(template.HTMLEscapeString(strings.ReplaceAll(part, "'", "’")))
	}
	return template.HTML(b.String()) // safe: every part is escaped
}

// skew is how far the creation time of a new row may be in the future. The row may be newer than
// the page, and the clocks of nodes differ.
const skew = 5 * time.Second

// ago describes how far at is in the past or the future. It returns "" for the zero time.
func ago(w *words.Words, now, at time.Time) string {
	if at.IsZero() {
		return ""
	}

	d := now.Sub(at)
	units := []string{"1 minute ago", "%s minutes ago", "1 hour ago", "%s hours ago", "1 day ago", "%s days ago"}
	ahead := d < -skew
	if ahead {
		d = -d
		units = []string{"in 1 minute", "in %s minutes", "in 1 hour", "in %s hours", "in 1 day", "in %s days"}
	}

	switch {
	case d < time.Minute && ahead:
		return w.Text("in a moment")
	case d < time.Minute:
		return w.Text("just now")
	case d < time.Hour:
		return count(w, int(d/time.Minute), units[0], units[1])
	case d < 48*time.Hour:
		return count(w, int(d/time.Hour), units[2], units[3])
	case d < 60*24*time.Hour:
		return count(w, int(d/(24*time.Hour)), units[4], units[5])
	}
	return w.Format(at, "2 Jan 2006")
}

// count returns the text one if n is 1, and otherwise the text several with n filled in.
func count(w *words.Words, n int, one, several string) string {
	if n == 1 {
		return w.Text(one)
	}
	return w.Text(words.Textf(several, n))
}

// iso formats a time as RFC 3339, for datetime attributes and tooltips.
func iso(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// day formats a time for people, to the minute.
func day(w *words.Words, at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return w.Format(at, "2 Jan 2006, 15:04 UTC")
}
