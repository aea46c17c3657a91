package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestTLSAddress(t *testing.T) {
	for _, tt := range []struct {
		listen, listenTLS hostPort
		cert              fileName
		hosts             hostNames
		want              hostPort
	}{
		{"127.0.0.1:8080", auto, "", nil, "127.0.0.1:8443"},
		{":8080", auto, "", nil, off},
		{":8080", ":443", "", nil, ":443"},
		{":8080", auto, "cert.pem", nil, ":8443"},
		{":80", auto, "cert.pem", nil, ":443"},
		{"[::1]:80", auto, "", hostNames{"a.test"}, "[::1]:443"},
		{"192.0.2.1:8080", auto, "", hostNames{"a.test"}, "192.0.2.1:8443"},
		{":80", off, "cert.pem", nil, off},
	} {
		c := Config{Listen: tt.listen, ListenTLS: tt.listenTLS}
		c.TLS.Cert, c.TLS.ACME.Hosts = tt.cert, tt.hosts
		if got := c.tlsAddress(); got != tt.want {
			t.Errorf("tlsAddress(%s, %s, %q, %q) = %s, want %s", tt.listen, tt.listenTLS, tt.cert, tt.hosts, got, tt.want)
		}
	}
}

func TestStrictTransport(t *testing.T) {
	for _, tt := range []struct {
		public, auth baseURL
		host         string
		want         bool
	}{
		{"https://pbx.example.org", "", "pbx.example.org", true},
		{"https://pbx.example.org:8443", "", "pbx.example.org:8443", true},
		{"http://pbx.example.org", "https://id.example.org", "id.example.org", true},
		{"http://pbx.example.org", "https://id.example.org", "pbx.example.org", false},
		{"https://pbx.example.org", "", "localhost", false},
		{"https://localhost:8443", "", "localhost:8443", false}, // all ports of this machine would be meant
		{"https://id.localhost:8443", "", "id.localhost:8443", false},
		{"https://192.0.2.1", "", "192.0.2.1", false},
		{"", "", "pbx.example.org", false},
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
		r.Host = tt.host
		Config{PublicURL: tt.public, AuthURL: tt.auth}.strictTransport(http.NotFoundHandler()).ServeHTTP(w, r)
		if got := w.Header().Get("Strict-Transport-Security") != ""; got != tt.want {
			t.Errorf("with %q and %q, an answer to %s is strict: %v, want %v", tt.public, tt.auth, tt.host, got, tt.want)
		}
	}
}
