// Package apidoc serves the OpenAPI document of the APIs, as a file and as pages.
//
// The document is that of package openapi, with the operator's own kinds and the addresses
// of this server. It is built on the first request.
package apidoc

import (
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/openapi"
	"github.com/selvage/selvage/templates"
)

// Config describes the server that the document is about.
type Config struct {
	openapi.Config
	Log *slog.Logger // nil means slog.Default()

	Guides []templates.DocsGroup // other documents, for the navigation
}

// An API serves the document. Use [New] to create one.
type API struct {
	log    *slog.Logger
	guides []templates.DocsGroup
	load   func() (*loaded, error)
}

// loaded is a document that is ready to be served.
type loaded struct {
	yaml   []byte
	etag   string
	intro  template.HTML
	setup  string
	groups []templates.DocsGroup
}

// New returns an API.
func New(c Config) *API {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return &API{log: c.Log, guides: c.Guides,
		load: sync.OnceValues(func() (*loaded, error) { return load(c.Config) })}
}

// load builds the document and prepares its pages.
func load(c openapi.Config) (*loaded, error) {
	doc, err := openapi.Build(c)
	if err != nil {
		return nil, err
	}
	text, err := doc.YAML()
	if err != nil {
		return nil, err
	}
	return &loaded{
		yaml: text, etag: web.ETag(text),
		intro: rich(doc.Description()), setup: setUp(c.PublicURL), groups: view(doc),
	}, nil
}

// Prefix is the path prefix of all pages.
const Prefix = "/docs/"

// Handler serves:
//
//	GET /docs
//	GET /docs/openapi.yaml
//	GET /docs/{area}
func (a *API) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /docs", web.Handle(a.showContents, a.fail))
	mux.Handle("GET /docs/{$}", http.RedirectHandler("/docs", http.StatusMovedPermanently))
	mux.Handle("GET /docs/openapi.yaml", web.AnyOrigin(web.Handle(a.serveYAML, a.fail), http.MethodGet))
	mux.Handle("GET /docs/{area}", web.Handle(a.showArea, a.fail))
	return mux
}

// showContents serves GET /docs: the introduction, and all operations or those that match
// the search query q.
func (a *API) showContents(w http.ResponseWriter, r *http.Request) error {
	doc, err := a.load()
	if err != nil {
		return err
	}
	query := strings.TrimSpace(r.URL.Query().Get("q"))
	return templates.Write(w, templates.Docs{
		Title: "Documentation of selvage", Nav: slices.Concat(a.guides, doc.groups), Guides: a.guides,
		Query: query, Intro: doc.intro, Setup: doc.setup, Contents: find(doc.groups, query),
	}, templates.Options{Scripts: true})
}

// find returns the operations that contain every word of a query, in their text or in the
// name of their area.
func find(groups []templates.DocsGroup, query string) (found []templates.DocsGroup) {
	words := strings.Fields(strings.ToLower(query))
	for _, g := range groups {
		kept := templates.DocsGroup{Name: g.Name}
		for _, area := range g.Tags {
			all := area.Operations
			area.Operations = nil
			for _, op := range all {
				text := strings.ToLower(area.Name + " " + op.Method + " " + op.Path + " " + op.Summary)
				if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) }) {
					area.Operations = append(area.Operations, op)
				}
			}
			if len(area.Operations) > 0 {
				kept.Tags = append(kept.Tags, area)
			}
		}

		if len(kept.Tags) > 0 {
			found = append(found, kept)
		}
	}

	return found
}

// showArea serves GET /docs/{area}.
func (a *API) showArea(w http.ResponseWriter, r *http.Request) error {
	doc, err := a.load()
	if err != nil {
		return err
	}

	page := templates.DocsPage{}
	for _, g := range doc.groups {
		shown := templates.DocsGroup{Name: g.Name}
		for _, area := range g.Tags {
			if area.URL == r.URL.Path {
				area.Here, page.Area, page.Title = true, area, area.Name+" – API of selvage"
			}
			shown.Tags = append(shown.Tags, area)
		}
		page.Nav = append(page.Nav, shown)
	}

	if page.Title == "" {
		return problem.NoSuch("page")
	}
	return templates.Write(w, page, templates.Options{Scripts: true})
}

// serveYAML serves GET /docs/openapi.yaml (RFC 9512).
func (a *API) serveYAML(w http.ResponseWriter, r *http.Request) error {
	doc, err := a.load()
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-cache")
	web.ServeDocument(w, r, "application/yaml", doc.etag, doc.yaml)
	return nil
}

// fail serves the error page for err.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	page, status := templates.NoGuide(), http.StatusNotFound
	if !errors.Is(err, problem.NotFound) {
		web.LogInternal(r, a.log, err)
		page, status = templates.Error{
			Title:     "Something went wrong",
			Text:      "The document could not be put together; the server's log says why.",
			RequestID: web.RequestID(r.Context()),
		}, http.StatusInternalServerError
	}
	_ = templates.Write(w, page, templates.Options{Status: status}) // the template was parsed at startup
}
