package main

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync/atomic"

	"github.com/rogpeppe/go-internal/testscript"
)

// A proxy stands in front of a server and can behave like a misconfigured one.
type proxy struct {
	how atomic.Pointer[string]
	to  atomic.Pointer[url.URL]
}

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
		ts.Check(os.WriteFile(ts.MkAbs(args[0]),
			pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o644))
	}
	*ts.Value(proxyKey{}).(**proxy) = p
	ts.Setenv("PROXY", s.URL)
}

// cmdBehind puts the proxy in front of a server: HOW URL.
func cmdBehind(ts *testscript.TestScript, _ bool, args []string) {
	to, err := url.Parse(args[1])
	ts.Check(err)
	p := *ts.Value(proxyKey{}).(**proxy)
	p.to.Store(to)
	p.how.Store(&args[0])
}

// ServeHTTP forwards a request to the server, or fails in the way that the command behind has set.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const fewBytes = 1 << 20 // the default limit of nginx
	to := p.to.Load()
	pass := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to) // also sets the Host of the server
		if *p.how.Load() == "well" {
			r.Out.Host = r.In.Host
		}
	}}

	switch how := *p.how.Load(); {
	case how == "away":
		http.Error(w, "<html>Bad Gateway", http.StatusBadGateway)
	case how == "small" && r.ContentLength > fewBytes:
		http.Error(w, "<html>Too large", http.StatusRequestEntityTooLarge)
	case how == "plain" && r.Header.Get("Upgrade") != "":
		r.Header.Del("Upgrade")
		r.Header.Del("Connection")
		pass.ServeHTTP(w, r)
	case how == "elsewhere":
		http.Redirect(w, r, "https://id.invalid"+r.URL.Path, http.StatusMovedPermanently)
	case how == "below" && !strings.HasPrefix(r.URL.Path, "/auth/"):
		http.NotFound(w, r)
	default:
		pass.ServeHTTP(w, r)
	}
}
