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
	"github.com/selvage/selvage/cmd/selvage/internal/docsite"
	"github.com/selvage/selvage/fabric/relay"
	"github.com/selvage/selvage/fabric/rest"
	"github.com/selvage/selvage/idp/oidc"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/openapi"
	"github.com/selvage/selvage/operator/dashboard"
	"github.com/selvage/selvage/recordings/laml"
	relayrest "github.com/selvage/selvage/recordings/rest"
	"github.com/selvage/selvage/sdk"
	"github.com/selvage/selvage/static"
	"github.com/selvage/selvage/templates"
)

// routes mounts the configured services on one mux, by path. The Host header is ignored.
func (a *App) routes(log *slog.Logger) (http.Handler, error) {
	mux := http.NewServeMux()
	mount := func(h http.Handler, paths ...string) {
		for _, p := range paths {
			mux.Handle(p, h)
		}
	}

	mount(http.HandlerFunc(notFound), "/")
	mount(static.Handler(), static.Prefix)
	mount(orNotFound(soon(sdk.Handler)), sdk.Prefix)
	docs := docsite.New(docsite.Config{
		Config: openapi.Config{
			Kinds:     a.Fabric.Resources.Kinds(),
			PublicURL: a.Where.Public,
			AuthURL:   a.Where.Auth,
		},
		Log: log,
	})
	mount(orNotFound(docs.Handler()), "/docs", docsite.Prefix)

	if a.serves(config.IDP) {
		api, err := oidc.New(oidc.Config{
			Provider:     a.IDP,
			Proofs:       a.proofs,
			Sessions:     a.sessions,
			Browsers:     a.Store,
			AuthURL:      a.Where.Auth,
			MTLSURL:      a.Where.MTLS,
			Certificates: a.Config.HasCertificates(),
			HTTP:         a.egress.Client(),
			Mailbox:      a.showsMailbox(),
			Log:          log,
		})
		if err != nil {
			return nil, err
		}
		mount(orNotFound(api.Handler()), pathsOf(api.Routes())...)
	}
	if a.showsMailbox() {
		mount(orNotFound(mailbox{a.Box, a.view, log}.Handler()), "/dev/mail", "/dev/mail/")
	}

	if a.serves(config.Fabric) {
		api := rest.New(rest.Config{
			Fabric:  a.Fabric,
			Clients: a.IDP,
			Rooms:   a.RoomSessions,
			Move:    a.mover(),
			Chat:    a.Chat,
			Access:  a.IDP.Tokens.Open,
			Confirm: a.confirm,
			Admit:   a.admit,
			Log:     log,
		})
		mount(soon(api.Handler), "/api/fabric", "/api/fabric/", "/api/project", "/api/project/", "/subscriber/")
	}
	if a.serves(config.Dashboard) {
		var err error
		a.pages, err = dashboard.New(dashboard.Config{
			Operators:     a.Operators,
			Fabric:        a.Fabric,
			Clients:       a.IDP,
			Recordings:    a.Recordings,
			Calls:         a.CallRecords,
			Rooms:         a.RoomSessions,
			NoCalls:       a.Calls == nil,
			Move:          a.mover(),
			Sessions:      a.sessions,
			PublicURL:     a.Where.Public,
			AuthURL:       a.Where.Auth,
			Factors:       a.operatorFactors,
			RequireFactor: a.Config.Operators.RequireFactor.Roles(a.Local()),
			Audit:         a.Store.ListAudit,
			SecretsShown:  a.Store.SecretsShown,
			Health:        a.healthOf(log),
			Counts:        a.Store.ListCounts,
			Installation:  installationPages{a}.all(),
			Log:           log,
		})
		if err != nil {
			return nil, err
		}
		mount(orNotFound(soon(a.pages.Handler)), dashboard.Prefix, dashboard.Prefix+"/")
	}

	if a.serves(config.Recordings) {
		offload, err := newOffload(a.Config)
		if err != nil {
			return nil, err
		}

		callers := recordingsCallers{a}
		api := laml.New(laml.Config{
			Recordings:  a.Recordings,
			Calls:       a.CallRecords,
			Credentials: callers.caller,
			IngestKey:   callers.ingestKey,
			Miss:        a.countMediaMiss,
			PublicURL:   a.Where.Public,
			Encoders:    a.Config.Recordings.MP3Parallel,
			Offload:     offload,
			Redirect:    a.newRedirect(),
			Log:         log,
		})
		mount(soon(api.Handler), "/api/laml/", "/2010-04-01/", laml.IngestPrefix)
		native := relayrest.New(relayrest.Config{
			Recordings:  a.Recordings,
			Credentials: callers.caller,
			MediaURLs:   api.MediaURLs,
			Log:         log,
		})
		mount(soon(native.Handler), relayrest.Prefix, relayrest.Prefix+"/")
	}

	mux.Handle("GET "+demo.Path, a.Demo.Handler(notFound))
	mux.Handle("GET "+demo.SDKPath, a.Demo.SDKHandler(notFound))
	a.mountJoin(mux)
	mux.HandleFunc("GET /robots.txt", robots)
	mux.HandleFunc("GET /{$}", a.front)
	return a.proofs.Offer(trimSlash(mux)), nil
}

// soon returns a handler that is built shortly after the start. The first request builds the
// handler if it arrives earlier. Comparing the patterns of a hundred routes takes longer than
// opening the keys, so the start does not wait for it.
func soon(make func() http.Handler) http.Handler {
	var h http.Handler
	made := sync.OnceFunc(func() { h = make() })
	time.AfterFunc(50*time.Millisecond, made)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		made()
		h.ServeHTTP(w, r)
	})
}

// pathsOf returns the paths of patterns, without duplicates. The mux mounted at these paths also
// handles other methods.
func pathsOf(patterns []string) (all []string) {
	for _, p := range patterns {
		if _, path, ok := strings.Cut(p, " "); ok {
			p = path
		}
		if !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	return all
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
// /language, it adds the URL to return to after changing the language.
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

// trimSlash accepts paths below /.well-known/ with two leading slashes. Clients build them from an
// issuer that ends with a slash.
func trimSlash(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "//.well-known/") {
			r.URL.Path, r.URL.RawPath = r.URL.Path[1:], ""
		}
		next.ServeHTTP(w, r)
	})
}

// notFound responds to requests for unknown paths. It responds with JSON to paths below the APIs,
// and with a page to others.
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
	page := templates.Error{Title: v.Words.Say("not-found.title"), Text: v.Words.Say("not-found.text")}
	if status == http.StatusMethodNotAllowed {
		page.Title, page.Text = v.Words.Say("not-so.title"), v.Words.Say(
			"not-so.text", "Method", console.Printable(r.Method))
	}
	page.Way = &templates.Link{Title: v.Words.Say("not-found.home"), URL: "/"}
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
