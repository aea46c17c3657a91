// Package manual serves the documentation as pages: the Markdown files of docs/ in the
// repository. Everything that a page loads is served here; nothing is fetched from other
// hosts.
package manual

import (
	"errors"
	"log/slog"
	"net/http"
	"sync"

	"github.com/selvage/selvage/docs"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/sdk"
	"github.com/selvage/selvage/templates"
)

// Prefix is the path prefix of the pages.
const Prefix = "/docs/guides/"

// A group is a heading of the navigation and its documents, in reading order.
type group struct {
	name      string
	documents []document
}

// A document is a page: its name, which is in its URL, and its title in the navigation.
type document struct{ name, title string }

// contents lists all documents.
var contents = []group{
	{"Begin", []document{
		{"start", "Five minutes"}, {"guide", "Guide"}, {"promises", "Promises"}, {"glossary", "Glossary"},
	}},
	{"Tutorials", []document{
		{"browser", "An app in a browser"}, {"web", "A web app with a server"},
		{"mobile", "An app on a phone"}, {"device", "A television, a command line"},
		{"backend", "A backend"}, {"switches", "Recordings from your switch"},
		{"moving", "Moving from a cloud"}, {"declared", "Projects in a repository"}, {"nodes", "Two nodes"},
	}},
	{"Reference", []document{
		{"configuration", "Configuration"}, {"cli", "Command line"}, {"apply", "Projects from a file"},
		{"api", "API"}, {"sdk", "Browser SDK"},
	}},
	{"Operating", []document{
		{"operations", "Operations"}, {"https", "HTTPS and proxies"}, {"databases", "Databases"},
		{"redis", "Redis"}, {"high-availability", "High availability"}, {"mail", "Mail"},
		{"delivery", "Deliveries"}, {"accounts", "Accounts"}, {"keys", "Keys"}, {"limits", "Limits"},
		{"monitoring", "Monitoring"}, {"audit", "Audit trail"}, {"troubleshooting", "Troubleshooting"},
		{"security", "Security"}, {"performance", "Performance"},
	}},
	{"Internals", []document{
		{"architecture", "Architecture"}, {"testing", "Testing"}, {"divergences", "Divergences"},
		{"openid", "OpenID certification"},
	}},
}

// source returns the Markdown of a document.
func source(name string) ([]byte, error) {
	if name == "sdk" {
		return sdk.Readme, nil
	}
	return docs.Files.ReadFile(name + ".md")
}

// A page is a rendered document.
type page struct {
	document
	rendered
}

// load maps names to functions that render the document on the first call.
var load = func() map[string]func() (page, error) {
	all := make(map[string]func() (page, error))
	for _, g := range contents {
		for _, d := range g.documents {
			all[d.name] = sync.OnceValues(func() (page, error) {
				text, err := source(d.name)
				if err != nil {
					return page{}, err
				}
				r, err := render(text)
				return page{d, r}, err
			})
		}
	}
	return all
}()

// Nav returns the navigation. here is the name of the current document, or "".
func Nav(here string) (groups []templates.DocsGroup) {
	for _, g := range contents {
		one := templates.DocsGroup{Name: g.name}
		for _, d := range g.documents {
			area := templates.DocsArea{Name: d.title, URL: Prefix + d.name, Here: d.name == here}
			if area.Here { // only the current document shows its headings
				if p, err := load[d.name](); err == nil {
					area.Operations = p.headings
				}
			}
			one.Tags = append(one.Tags, area)
		}
		groups = append(groups, one)
	}
	return groups
}

// Handler serves:
//
//	GET /docs/guides/{name}
func Handler(log *slog.Logger) http.Handler {
	fail := func(w http.ResponseWriter, r *http.Request, err error) {
		page, status := templates.NoGuide(), http.StatusNotFound
		if !errors.Is(err, problem.NotFound) {
			log.ErrorContext(r.Context(), "showing documentation", "error", err)
			page, status = templates.Error{Title: "Something went wrong",
				Text: "The page cannot be shown; the server's log says why."}, http.StatusInternalServerError
		}
		_ = templates.Write(w, page, templates.Options{Status: status}) // the template was parsed at startup
	}
	mux := http.NewServeMux()
	mux.Handle("GET "+Prefix+"{name}", web.Handle(show, fail))
	return mux
}

// show serves GET /docs/guides/{name}.
func show(w http.ResponseWriter, r *http.Request) error {
	find, ok := load[r.PathValue("name")]
	if !ok {
		return problem.NoSuch("page")
	}
	p, err := find()
	if err != nil {
		return err
	}
	return templates.Write(w, templates.Guide{Title: p.title + " · selvage", Nav: Nav(p.name), Text: p.html},
		templates.Options{Scripts: true})
}
