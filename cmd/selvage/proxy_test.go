package main

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/rogpeppe/go-internal/testscript"
)

// A proxy stands in front of a server and can behave like a misconfigured one.
type proxy struct {
	how    atomic.Pointer[string]  // how it behaves; see ServeHTTP
	server atomic.Pointer[url.URL] // the server that it forwards requests to
}

// proxyKey is the key under which a script keeps its proxy.
type proxyKey struct{}

// cmdProxy starts a proxy and sets PROXY to its URL. If the name of a file is given, the proxy
// serves HTTPS and writes its certificate to the file.
func cmdProxy(ts *testscript.TestScript, _ bool, args []string) {
	p := new(proxy)
	how := "away"
	p.how.Store(&how)
	s := httptest.NewUnstartedServer(p)
	ts.Defer(s.Close)
	if len(args) == 0 {
		s.Start()
	} else {
		s.StartTLS()
		writePEM(ts, args[0], "CERTIFICATE", s.Certificate().Raw)
	}
	*ts.Value(proxyKey{}).(**proxy) = p
	ts.Setenv("PROXY", s.URL)
}

// cmdBehind puts the proxy in front of a server: HOW URL.
func cmdBehind(ts *testscript.TestScript, _ bool, args []string) {
	server, err := url.Parse(args[1])
	ts.Check(err)
	p := *ts.Value(proxyKey{}).(**proxy)
	p.server.Store(server)
	p.how.Store(&args[0])
}

// ServeHTTP forwards a request to the server, or fails in the way that the command behind has set.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const maxBody = 1 << 20 // the default limit of nginx
	how := *p.how.Load()
	server := p.server.Load()
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(server) // also sets the Host of the server
		if how == "well" {
			r.Out.Host = r.In.Host
		}
	}}

	switch {
	case how == "away":
		http.Error(w, "<html>Bad Gateway", http.StatusBadGateway)
	case how == "small" && r.ContentLength > maxBody:
		http.Error(w, "<html>Too large", http.StatusRequestEntityTooLarge)
	case how == "plain" && r.Header.Get("Upgrade") != "":
		r.Header.Del("Upgrade")
		r.Header.Del("Connection")
		forward.ServeHTTP(w, r)
	case how == "elsewhere":
		http.Redirect(w, r, "https://id.invalid"+r.URL.Path, http.StatusMovedPermanently)
	case how == "below" && !strings.HasPrefix(r.URL.Path, "/auth/"):
		http.NotFound(w, r)
	default:
		forward.ServeHTTP(w, r)
	}
}
