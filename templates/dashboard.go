package templates

import (
	"fmt"
	"html/template"
	"sync"
	"time"

	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/static"
)

// A Dashboard is a page of the dashboard: what all of them have around their own, the
// name of its file under pages/dashboard, and what that shows.
type Dashboard struct {
	Frame
	Page string
	Data any
}

func (d Dashboard) name() string { return d.Page + ".html" }

// A Frame is what the pages of the dashboard have in common.
type Frame struct {
	Title     string
	Theme     string // as in View
	Sheet     string // the style sheet that it shows the parts of; "" is that of the dashboard, which is no sheet of parts
	Operator  string // who is signed in; "" on the pages before
	Project   string // name of the one that is looked at; "" for the installation
	Projects  []FrameLink
	Nav       []FrameLink
	FormToken string // goes back with each form
	Notice    string // what was just done
	Now       time.Time
}

// A FrameLink leads to a page, or is the one that is shown.
type FrameLink struct {
	Title, URL string
	Current    bool
	Apart      bool // it begins another group
}

// dashboard are the pages of the dashboard, apart from the others: each names its own
// parts as it likes.
var dashboard = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"passkeywords": func(kind, origin string) (string, error) {
			return passkeyWords(words.English(), kind, origin)
		},
		"static": static.URL, "ago": ago, "iso": iso, "day": day, "themes": func() []string {
			return []string{"light", "dark"}
		},
	}).ParseFS(pages, "pages/dashboard/*.html"))
})

// ago writes a time as people tell it; "" for none.
func ago(now, at time.Time) string {
	if at.IsZero() {
		return ""
	}
	d := now.Sub(at)
	format, ahead := "%s ago", d < 0
	if ahead {
		format, d = "in %s", -d
	}
	switch {
	case d < time.Minute && ahead:
		return "in a moment"
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return fmt.Sprintf(format, count(int(d/time.Minute), "minute"))
	case d < 48*time.Hour:
		return fmt.Sprintf(format, count(int(d/time.Hour), "hour"))
	case d < 60*24*time.Hour:
		return fmt.Sprintf(format, count(int(d/(24*time.Hour)), "day"))
	}
	return at.UTC().Format("2 Jan 2006")
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// iso writes a time for machines, and for who points at it.
func iso(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// day writes a time for people, to the minute.
func day(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format("2 Jan 2006, 15:04 UTC")
}
