package server

import (
	"net"
	"net/http"
	"net/http/pprof"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/internal/web"
)

// ops serves health and metrics to operators and monitoring, on its own listener.
type ops struct {
	config   config.Config
	metrics  *metrics
	needs    *dependencies
	stopping *atomic.Bool
	version  string
}

// Handler serves:
//
//	GET  /debug/pprof/
//	GET  /healthz
//	GET  /metrics
//	GET  /readyz
func (o ops) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /healthz", o.healthy)
	mux.Handle("GET /metrics", o.metrics.handler())
	mux.HandleFunc("GET /readyz", o.ready)
	return o.byAddress(ownPages(mux))
}

// ownPages rejects requests that pages of other sites send through a browser that can reach this
// listener. Such a page could not read the response, but it could use up CPU time with profiles.
func ownPages(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isForeign(r) {
			http.Error(w, "not for pages of other sites", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isForeign reports whether a page of a different site sent a request.
func isForeign(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
	default:
		return true
	}
	for _, name := range []string{"Origin", "Referer"} {
		page := r.Header.Get(name)
		if page == "" {
			continue
		}
		u, err := url.Parse(page)
		if err != nil || u.Host != r.Host {
			return true
		}
	}
	return false
}

// byAddress rejects requests whose Host is a name, not an address, if they come from a browser or
// the listener is on loopback. Otherwise a page in an operator's browser could point its own host
// name to this listener and read the responses (DNS rebinding).
func (o ops) byAddress(next http.Handler) http.Handler {
	local := o.config.ListenOps.Loopback()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		isAddress := host == "localhost" || net.ParseIP(strings.Trim(host, "[]")) != nil
		if !isAddress && (local || isBrowser(r)) {
			http.Error(w, "use the IP address as the host name", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isBrowser reports whether a browser sent a request.
func isBrowser(r *http.Request) bool {
	for _, name := range []string{"Sec-Fetch-Site", "Origin", "Referer", "Accept-Language"} {
		if r.Header.Get(name) != "" {
			return true
		}
	}
	return strings.HasPrefix(r.UserAgent(), "Mozilla/")
}

// healthy serves GET /healthz. The response says that the process runs, and is the same if a dependency
// fails.
func (o ops) healthy(w http.ResponseWriter, _ *http.Request) {
	_ = web.JSON(w, http.StatusOK, map[string]string{"status": "ok"}) // encoding a map of strings cannot fail
}

// A readiness is the response of /readyz.
type readiness struct {
	Status  string            `json:"status"`
	Checks  map[string]string `json:"checks"`
	Version string            `json:"version"`
}

// ready serves GET /readyz, which reports whether this server can take requests. As soon as the
// server begins to stop, the response is an error.
func (o ops) ready(w http.ResponseWriter, _ *http.Request) {
	state := readiness{
		Status:  "ready",
		Checks:  make(map[string]string),
		Version: o.version,
	}
	status := http.StatusOK
	for name, last := range o.needs.check() {
		state.Checks[name] = last.String()
		if last.err != nil {
			state.Status = "not ready"
			status = http.StatusServiceUnavailable
		}
	}

	if o.stopping.Load() {
		state.Status = "stopping"
		status = http.StatusServiceUnavailable
	}
	_ = web.JSON(w, status, state) // encoding a struct of strings cannot fail
}
