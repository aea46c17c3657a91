package main

import (
	"net/http"
	"net/http/pprof"
	"sync/atomic"

	"github.com/selvage/selvage/internal/web"
)

// An ops is what operators and their machines ask, on a listener of its own.
type ops struct {
	app      *app
	metrics  *metrics
	stopping *atomic.Bool
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
	return mux
}

// healthy serves GET /healthz: the process runs, whatever it depends on.
func (o ops) healthy(w http.ResponseWriter, _ *http.Request) {
	_ = web.JSON(w, http.StatusOK, map[string]string{"status": "ok"}) // a map of strings always encodes
}

// ready serves GET /readyz: requests may be sent here. It fails first when the
// server is told to stop.
func (o ops) ready(w http.ResponseWriter, r *http.Request) {
	type answer struct {
		Status string            `json:"status"`
		Checks map[string]string `json:"checks"`
	}
	a, status := answer{"ready", make(map[string]string)}, http.StatusOK
	for name, err := range o.app.ready(r.Context()) {
		a.Checks[name] = "ok"
		if err != nil {
			a.Checks[name], a.Status, status = err.Error(), "not ready", http.StatusServiceUnavailable
		}
	}
	if o.stopping.Load() {
		a.Status, status = "stopping", http.StatusServiceUnavailable
	}
	_ = web.JSON(w, status, a) // a struct of strings always encodes
}
