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
	Unrepeatable   bool        // the page shows something only once, so it offers nothing that reloads it
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
			"ago":          func(now, at time.Time) string { return ago(w, now, at) },
			"clock":        w.Format,
			"date":         w.Date,
			"day":          func(at time.Time) string { return day(w, at) },
			"iso":          iso,
			"lang":         func() string { return w.Tag },
			"languages":    words.All,
			"passkeywords": func(kind, origin string) (string, error) { return passkeyWords(w, kind, origin) },
			"picture":      picture,
			"prose":        prose,
			"say":          w.Say,
			"static":       static.URL,
			"themes":       func() []string { return []string{"light", "dark"} },
			"tr":           w.Text,
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

	word, _, _ := strings.Cut(text, " ")
	looksLikeCode := strings.ContainsAny(strings.TrimSuffix(word, "."), "._/:")
	if !looksLikeCode {
		first, size := utf8.DecodeRuneInString(text)
		text = string(unicode.ToUpper(first)) + text[size:]
	}
	last := text[len(text)-1:]
	if !strings.ContainsAny(last, ".!?:") {
		text += "."
	}

	var b strings.Builder
	for i, part := range strings.Split(text, "`") {
		betweenBackticks := i%2 == 1
		if betweenBackticks {
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

const oneDay = 24 * time.Hour

// An ageTexts holds the texts for a distance in time. Those for several units contain %s for the
// number.
type ageTexts struct {
	now     string // less than a minute
	minute  string
	minutes string
	hour    string
	hours   string
	day     string
	days    string
}

var (
	pastTexts = ageTexts{
		now:     "just now",
		minute:  "1 minute ago",
		minutes: "%s minutes ago",
		hour:    "1 hour ago",
		hours:   "%s hours ago",
		day:     "1 day ago",
		days:    "%s days ago",
	}
	futureTexts = ageTexts{
		now:     "in a moment",
		minute:  "in 1 minute",
		minutes: "in %s minutes",
		hour:    "in 1 hour",
		hours:   "in %s hours",
		day:     "in 1 day",
		days:    "in %s days",
	}
)

// ago describes how far at is in the past or the future. It returns "" for the zero time, and the
// date if it is 60 days or more away.
func ago(w *words.Words, now, at time.Time) string {
	if at.IsZero() {
		return ""
	}

	distance := now.Sub(at)
	texts := pastTexts
	if distance < -skew {
		distance = -distance
		texts = futureTexts
	}

	switch {
	case distance < time.Minute:
		return w.Text(texts.now)
	case distance < time.Hour:
		return count(w, int(distance/time.Minute), texts.minute, texts.minutes)
	case distance < 2*oneDay:
		return count(w, int(distance/time.Hour), texts.hour, texts.hours)
	case distance < 60*oneDay:
		return count(w, int(distance/oneDay), texts.day, texts.days)
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
