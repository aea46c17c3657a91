package oidc_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestDocuments shows that the public documents are cacheable and readable by other origins.
func TestDocuments(t *testing.T) {
	w := newWorld(t)
	for _, path := range []string{
		"/.well-known/openid-configuration", "/.well-known/oauth-authorization-server", "/oauth/jwks",
	} {
		got := w.newBrowser().get(path)
		wantStatus(t, "GET "+path, got, http.StatusOK)
		wantHeader(t, "GET "+path, got, "Cache-Control", "public, max-age=300")
		if kind := got.header.Get("Content-Type"); !strings.HasPrefix(kind, "application/j") {
			t.Errorf("GET %s: Content-Type %q, want JSON or a key set", path, kind)
		}
		etag := got.header.Get("ETag")
		if etag == "" {
			t.Errorf("GET %s: no ETag, want one", path)
		}

		req, err := http.NewRequest(http.MethodGet, w.url+path, nil)
		must(t, err)
		req.Header.Set("If-None-Match", etag)
		req.Header.Set("Origin", "https://app.example")
		cached := w.newBrowser().do(req)
		wantStatus(t, "GET with the ETag of "+path, cached, http.StatusNotModified)
		wantHeader(t, "GET with the ETag of "+path, cached, "Access-Control-Allow-Origin", "*")
		wantHeader(t, "GET with the ETag of "+path, cached, "Access-Control-Allow-Credentials", "")

		wantStatus(t, "POST "+path, w.newBrowser().post(path, nil), http.StatusMethodNotAllowed)
	}

	doc := w.newBrowser().get("/.well-known/openid-configuration").json(t)
	for name, want := range map[string]string{
		"issuer": w.url + "/",
		"authorization_response_iss_parameter_supported": "true",
		"code_challenge_methods_supported":               "[S256]",
	} {
		if got := text(doc[name]); got != want {
			t.Errorf("the discovery document has the %s %s, want %s", name, got, want)
		}
	}
}
