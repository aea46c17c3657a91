package oidc_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/keys"
)

// answer passes one request to the handler directly, without a network. headers are pairs of names
// and values.
func (w *world) answer(method, path string, form url.Values, headers ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, w.url+path, strings.NewReader(form.Encode()))
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for pair := range slices.Chunk(headers, 2) {
		req.Header.Set(pair[0], pair[1])
	}
	recorded := httptest.NewRecorder()
	w.handler.ServeHTTP(recorded, req)
	return recorded
}

// BenchmarkCodeFlow measures the code flow of a signed-in browser, with a database on disk: a request
// for the code, and one for the tokens.
func BenchmarkCodeFlow(b *testing.B) {
	w := newWorld(b)
	c, _ := w.client(func(n *idp.Client) { n.IDTokenAlg = keys.ES256 })

	// Sign in once, and keep the cookies.
	br := w.newBrowser()
	br.code(c)
	home, err := url.Parse(w.url)
	must(b, err)
	var cookies []string
	for _, cookie := range br.http.Jar.Cookies(home) {
		cookies = append(cookies, cookie.Name+"="+cookie.Value)
	}

	cookie, path := strings.Join(cookies, "; "), "/login/oauth/authorize?"+request(c).Encode()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			answer := w.answer(http.MethodGet, path, nil, "Cookie", cookie)
			location, err := answer.Result().Location()
			if err != nil {
				b.Error(err)
				return
			}

			form := redemption(c, location.Query().Get("code"))
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
			got := w.answer(http.MethodGet, "/oauth/userinfo", nil, "Authorization", token)
			if got.Code != http.StatusOK {
				b.Error(got.Body)
				return
			}
		}
	})
}

// BenchmarkIntrospect measures how long a service takes to introspect its own token.
func BenchmarkIntrospect(b *testing.B) {
	w := newWorld(b)
	c, clientSecret := w.client(func(n *idp.Client) {
		n.Type, n.RedirectURIs, n.AccessToken = idp.Service, nil, idp.FabricToken
	})
	credentials := basic(c.ID, clientSecret)
	grant := url.Values{"grant_type": {"client_credentials"}}
	tokens := w.post("/oauth/token", grant, "Authorization", credentials).json(b)
	form := url.Values{"token": {text(tokens["access_token"])}}
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			got := w.answer(http.MethodPost, "/oauth/introspect", form, "Authorization", credentials)
			if got.Code != http.StatusOK {
				b.Error(got.Body)
				return
			}
		}
	})
}
