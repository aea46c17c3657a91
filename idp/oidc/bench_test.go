package oidc_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/keys"
)

// answer passes one request to the handler directly, without a network.
func (w *world) answer(method, path string, form url.Values, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, w.url+path, strings.NewReader(form.Encode()))
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, r)
	return rec
}

// BenchmarkCodeFlow measures the code flow of a signed-in browser: authorize and token, with a
// database on disk.
func BenchmarkCodeFlow(b *testing.B) {
	w := newWorld(b)
	c, _ := w.client(func(n *idp.Client) { n.IDTokenAlg = keys.ES256 })

	// Sign in once, and keep the cookies.
	br := w.browser()
	br.code(c)
	home, err := url.Parse(w.url)
	must(b, err)
	var cookies []string
	for _, ck := range br.http.Jar.Cookies(home) {
		cookies = append(cookies, ck.Name+"="+ck.Value)
	}

	cookie, query := strings.Join(cookies, "; "), request(c).Encode()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			to, err := w.answer(http.MethodGet, "/login/oauth/authorize?"+query, nil, "Cookie",
				cookie).Result().Location()
			if err != nil {
				b.Error(err)
				return
			}

			form := url.Values{"grant_type": {"authorization_code"}, "client_id": {c.ID},
				"code": {to.Query().Get("code")}, "redirect_uri": {callback}, "code_verifier": {verifier}}
			if got := w.answer(http.MethodPost, "/oauth/token", form); got.Code != http.StatusOK {
				b.Error(got.Body)
				return
			}
		}
	})
}

// BenchmarkUserinfo measures a request to the userinfo endpoint.
func BenchmarkUserinfo(b *testing.B) {
	w := newWorld(b)
	c, _ := w.client(nil)
	token := "Bearer " + text(w.tokens(c)["access_token"])
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if got := w.answer(http.MethodGet, "/oauth/userinfo", nil, "Authorization",
				token); got.Code != http.StatusOK {
				b.Error(got.Body)
				return
			}
		}
	})
}

// BenchmarkIntrospect measures how long a service takes to introspect its own token.
func BenchmarkIntrospect(b *testing.B) {
	w := newWorld(b)
	c, secret := w.client(func(n *idp.Client) {
		n.Type, n.RedirectURIs, n.AccessToken = idp.Service, nil, idp.FabricToken
	})
	set := w.post("/oauth/token", url.Values{"grant_type": {"client_credentials"}}, "Authorization",
		basic(c.ID, secret)).json(b)
	form := url.Values{"token": {text(set["access_token"])}}
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {

			if got := w.answer(http.MethodPost, "/oauth/introspect", form,
				"Authorization", basic(c.ID, secret)); got.Code != http.StatusOK {
				b.Error(got.Body)
				return
			}
		}
	})
}
