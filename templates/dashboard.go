package templates

import (
	"fmt"
	"html/template"
	"sync"
	"time"

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
	Title     string
	Theme     string // as in View
	Sheet     string // the style sheet that the styles page shows; "" means the dashboard's
	Operator  string // the operator signed in; "" before sign-in
	Project   string // name of the selected project; "" for the installation
	Projects  []FrameLink
	Nav       []FrameGroup
	Crumbs    []FrameLink // the pages above this one
	Search    string      // URL of the search
	FormToken string      // sent back with each form
	Notice    string      // what was just done
	Now       time.Time
}

// A FrameGroup is a heading of the navigation with its links. The first group has no heading.
type FrameGroup struct {
	Title string
	Links []FrameLink
}

// A FrameLink is a link in the navigation.
type FrameLink struct {
	Title, URL string
	Current    bool
	Named      bool // the title is a name that somebody chose
}

// dashboard returns the templates of the dashboard. They are separate from the others, so that
// their blocks may have any name.
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

// ago describes how far at is in the past or the future. It returns "" for the zero time.
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

// iso formats a time as RFC 3339, for datetime attributes and tooltips.
func iso(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// day formats a time for people, to the minute.
func day(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format("2 Jan 2006, 15:04 UTC")
}
