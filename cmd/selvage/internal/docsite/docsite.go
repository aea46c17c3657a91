// Package docsite serves the documentation as pages: the guides, which are the Markdown files in docs/,
// and the OpenAPI document of the APIs. The OpenAPI document is also served as a file.
//
// Package openapi provides the OpenAPI document. docsite adds the kinds of resources that the operator has
// defined, and the addresses of this server. The first request renders the document. Pages load nothing
// from other hosts.
package docsite

import (
	"errors"
	"log/slog"
	"net/http"
	"sync"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/openapi"
	"github.com/selvage/selvage/templates"
)

// Config describes the server that the documentation is about.
type Config struct {
	openapi.Config
	Log *slog.Logger // nil means slog.Default()
}

// A Site serves the documents. Use [New] to create one.
type Site struct {
	log  *slog.Logger
	load func() (*reference, error)
}

// New returns a Site.
func New(c Config) *Site {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return &Site{c.Log, sync.OnceValues(func() (*reference, error) { return loadReference(c.Config) })}
}

// Prefix is the path prefix of all pages.
const Prefix = "/docs/"

// Handler serves:
//
//	GET /docs
//	GET /docs/openapi.yaml
//	GET /docs/{area}
//	GET /docs/guides/{name}
func (s *Site) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /docs", web.Handle(s.showContents, s.fail))
	mux.Handle("GET /docs/{$}", http.RedirectHandler("/docs", http.StatusMovedPermanently))
	mux.Handle("GET /docs/openapi.yaml", web.AnyOrigin(web.Handle(s.serveYAML, s.fail), http.MethodGet))
	mux.Handle("GET /docs/{area}", web.Handle(s.showArea, s.fail))
	mux.Handle("GET "+guidePrefix+"{name}", web.Handle(showGuide, s.fail))
	return mux
}

// fail serves the error page for err.
func (s *Site) fail(w http.ResponseWriter, r *http.Request, err error) {
	page, status := templates.DocsNotFound(), http.StatusNotFound
	if !errors.Is(err, problem.NotFound) {
		web.LogInternal(r, s.log, err)
		page, status = templates.Error{
			Title:     "Something went wrong",
			Text:      "The document could not be put together; the server's log says why.",
			RequestID: web.RequestID(r.Context()),
		}, http.StatusInternalServerError
	}
	_ = templates.Write(w, page, templates.Options{Status: status}) // the template was parsed at startup
}
