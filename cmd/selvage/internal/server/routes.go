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
	mux.HandleFunc("/", notFound)
	mux.Handle(static.Prefix, static.Handler())
	mux.Handle(sdk.Prefix, orNotFound(soon(sdk.Handler)))
	a.mountDocs(mux, log)

	if a.serves(config.IDP) {
		err := a.mountIDP(mux, log)
		if err != nil {
			return nil, err
		}
	}
	if a.showsMailbox() {
		mountAll(mux, orNotFound(mailbox{a.Box, a.view, log}.Handler()), "/dev/mail", "/dev/mail/")
	}
	if a.serves(config.Fabric) {
		a.mountFabric(mux, log)
	}
	if a.serves(config.Dashboard) {
		err := a.mountDashboard(mux, log)
		if err != nil {
			return nil, err
		}
	}
	if a.serves(config.Recordings) {
		err := a.mountRecordings(mux, log)
		if err != nil {
			return nil, err
		}
	}

	mux.Handle("GET "+demo.Path, a.Demo.Handler(notFound))
	mux.Handle("GET "+demo.SDKPath, a.Demo.SDKHandler(notFound))
	a.mountJoin(mux)
	mux.HandleFunc("GET /robots.txt", robots)
	mux.HandleFunc("GET /{$}", a.front)
	return a.proofs.Offer(trimSlash(mux)), nil
}

// mountAll mounts h at each of paths.
func mountAll(mux *http.ServeMux, h http.Handler, paths ...string) {
	for _, path := range paths {
		mux.Handle(path, h)
	}
}

// mountDocs mounts the pages of the documentation.
func (a *App) mountDocs(mux *http.ServeMux, log *slog.Logger) {
	docs := docsite.New(docsite.Config{
		Config: openapi.Config{
			Kinds:     a.Fabric.Resources.Kinds(),
			PublicURL: a.Where.Public,
			AuthURL:   a.Where.Auth,
		},
		Log: log,
	})
	mountAll(mux, orNotFound(docs.Handler()), "/docs", docsite.Prefix)
}

// mountIDP mounts the OpenID provider.
func (a *App) mountIDP(mux *http.ServeMux, log *slog.Logger) error {
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
		return err
	}
	mountAll(mux, orNotFound(api.Handler()), pathsOf(api.Routes())...)
	return nil
}

// mountFabric mounts the API of projects, resources and subscribers.
func (a *App) mountFabric(mux *http.ServeMux, log *slog.Logger) {
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
	mountAll(mux, soon(api.Handler),
		"/api/fabric", "/api/fabric/", "/api/project", "/api/project/", "/subscriber/")
}

// mountDashboard mounts the dashboard, and keeps it in a.pages.
func (a *App) mountDashboard(mux *http.ServeMux, log *slog.Logger) error {
	pages, err := dashboard.New(dashboard.Config{
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
		return err
	}

	a.pages = pages
	mountAll(mux, orNotFound(soon(pages.Handler)), dashboard.Prefix, dashboard.Prefix+"/")
	return nil
}

// mountRecordings mounts the compatible and the native API of recordings.
func (a *App) mountRecordings(mux *http.ServeMux, log *slog.Logger) error {
	offload, err := newOffload(a.Config)
	if err != nil {
		return err
	}

	callers := recordingsCallers{a}
	compatible := laml.New(laml.Config{
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
	mountAll(mux, soon(compatible.Handler), "/api/laml/", "/2010-04-01/", laml.IngestPrefix)

	native := relayrest.New(relayrest.Config{
		Recordings:  a.Recordings,
		Credentials: callers.caller,
		MediaURLs:   compatible.MediaURLs,
		Log:         log,
	})
	mountAll(mux, soon(native.Handler), relayrest.Prefix, relayrest.Prefix+"/")
	return nil
}

// soon returns a handler that is built shortly after the start. The first request builds the
// handler if it arrives earlier. Comparing the patterns of a hundred routes takes longer than
// opening the keys, so the start does not wait for it.
func soon(build func() http.Handler) http.Handler {
	built := sync.OnceValue(build)
	time.AfterFunc(50*time.Millisecond, func() { built() })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		built().ServeHTTP(w, r)
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
			r.URL.Path = r.URL.Path[1:]
			r.URL.RawPath = ""
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
	page := templates.Error{
		Title: v.Words.Say("not-found.title"),
		Text:  v.Words.Say("not-found.text"),
		Way:   &templates.Link{Title: v.Words.Say("not-found.home"), URL: "/"},
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
