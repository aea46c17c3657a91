package server

import (
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/cmd/selvage/internal/console"
	"github.com/selvage/selvage/cmd/selvage/internal/demo"
	"github.com/selvage/selvage/fabric/relay"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/sdk"
	"github.com/selvage/selvage/static"
	"github.com/selvage/selvage/templates"
)

// routes mounts the configured services on one mux, by path. The Host header is ignored.
func (a *App) routes(log *slog.Logger) (http.Handler, error) {
	m := mounter{App: a, mux: http.NewServeMux(), log: log}
	m.mux.HandleFunc("/", notFound)
	m.mux.Handle(static.Prefix, static.Handler())
	m.mux.Handle(sdk.Prefix, orNotFound(soon(sdk.Handler)))
	m.docs()

	if a.serves(config.IDP) {
		err := m.idp()
		if err != nil {
			return nil, err
		}
	}
	if a.showsMailbox() {
		box := mailbox{box: a.Box, view: a.view, log: log}
		m.mount(orNotFound(box.Handler()), "/dev/mail", "/dev/mail/")
	}
	if a.serves(config.Fabric) {
		m.fabric()
	}
	if a.serves(config.Dashboard) {
		err := m.dashboard()
		if err != nil {
			return nil, err
		}
	}
	if a.serves(config.Recordings) {
		err := m.recordings()
		if err != nil {
			return nil, err
		}
	}

	m.mux.Handle("GET "+demo.Path, a.Demo.Handler(notFound))
	m.mux.Handle("GET "+demo.SDKPath, a.Demo.SDKHandler(notFound))
	a.mountJoin(m.mux)
	m.mux.HandleFunc("GET /robots.txt", robots)
	m.mux.HandleFunc("GET /{$}", a.front)
	return a.proofs.Offer(trimSlash(m.mux)), nil
}

// soon returns a handler that is built shortly after the start, or by the first request if that arrives
// earlier. The start does not wait for it, because comparing the patterns of a hundred routes takes longer
// than opening the keys.
func soon(build func() http.Handler) http.Handler {
	built := sync.OnceValue(build)
	const delay = 50 * time.Millisecond
	time.AfterFunc(delay, func() { built() })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		built().ServeHTTP(w, r)
	})
}

func (a *App) serves(service string) bool { return a.Config.Services.Has(service) }

// front serves GET /. SDKs open a WebSocket there, and browsers load the start page.
func (a *App) front(w http.ResponseWriter, r *http.Request) {
	if a.relay != nil && relay.Wanted(r) {
		a.relay.ServeHTTP(w, r)
		return
	}
	a.home(w, r)
}

// home serves the start page. It shows the version only to requests from the server's own machine.
func (a *App) home(w http.ResponseWriter, r *http.Request) {
	v := a.view(r)
	page := a.welcome(v.Words)
	if web.IsLocal(r) {
		page.Version = a.version
	}
	_ = templates.Write(w, page, templates.Options{View: v}) // the template was parsed at startup
}

// view returns the theme and language of the browser that sent r. If this server serves POST
// /language, view also sets the URL to return to after the language is changed.
func (a *App) view(r *http.Request) templates.View {
	v := viewOf(r)
	if a.serves(config.IDP) && r.Method == http.MethodGet {
		v.Back = r.URL.RequestURI()
	}
	return v
}

// viewOf returns the theme and language of the browser that sent r.
func viewOf(r *http.Request) templates.View {
	return templates.View{
		Theme: web.Theme(r),
		Words: words.Choose(web.Language(r), r.Header.Get("Accept-Language")),
	}
}

// robots serves GET /robots.txt, which asks search engines not to index anything.
func robots(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "User-agent: *\nDisallow: /\n") // fails only if the client has disconnected
}

// trimSlash removes one of two slashes before .well-known/. Clients that append this path to an issuer
// send two slashes, because the issuer ends with a slash.
func trimSlash(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "//.well-known/") {
			r.URL.Path = r.URL.Path[1:]
			r.URL.RawPath = ""
		}
		next.ServeHTTP(w, r)
	})
}

// notFound responds to requests for unknown paths: with JSON if the path is below the path of an API, and
// otherwise with a page.
func notFound(w http.ResponseWriter, r *http.Request) { writeUnmatched(w, r, http.StatusNotFound) }

// apis lists the path prefixes that programs use.
var apis = []string{"/api/", "/2010-04-01/", "/oauth/", "/subscriber/", "/.well-known/", "/ingest/"}

// writeUnmatched writes the response to an unknown path or method.
func writeUnmatched(w http.ResponseWriter, r *http.Request, status int) {
	if slices.ContainsFunc(apis, func(p string) bool { return strings.HasPrefix(r.URL.Path, p) }) {
		web.Refuse(r.Context(), problem.New(problem.NotFound, "", "the server has no such path or method"))
		_ = web.JSON(w, status, map[string]string{"error": http.StatusText(status)}) // encoding strings cannot fail
		return
	}
	v := viewOf(r)
	page := templates.Error{
		Title:    v.Words.Say("not-found.title"),
		Text:     v.Words.Say("not-found.text"),
		Continue: &templates.Link{Title: v.Words.Say("not-found.home"), URL: "/"},
	}
	if status == http.StatusMethodNotAllowed {
		page.Title = v.Words.Say("not-so.title")
		page.Text = v.Words.Say("not-so.text", "Method", console.Printable(r.Method))
	}
	_ = templates.Write(w, page, templates.Options{Status: status, View: v}) // the template was parsed at startup
}

// orNotFound replaces a mux's response to requests that match none of its patterns.
func orNotFound(mux http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mux.ServeHTTP(&unmatched{ResponseWriter: w, r: r}, r)
	})
}

// unmatched replaces the response body that a mux writes if no pattern matches.
type unmatched struct {
	http.ResponseWriter
	r        *http.Request
	replaced bool
}

func (w *unmatched) WriteHeader(status int) {
	if w.r.Pattern == "" && (status == http.StatusNotFound || status == http.StatusMethodNotAllowed) {
		w.replaced = true
		writeUnmatched(w.ResponseWriter, w.r, status)
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *unmatched) Write(p []byte) (int, error) {
	if w.replaced {
		return len(p), nil
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap returns the wrapped writer, for http.ResponseController.
func (w *unmatched) Unwrap() http.ResponseWriter { return w.ResponseWriter }
