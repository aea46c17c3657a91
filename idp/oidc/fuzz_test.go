package oidc_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/fuzzcost"
)

// requestBound limits the cost of a whole request, including the database.
var requestBound = fuzzcost.Bound{
	CPU:        20 * time.Millisecond,
	CPUPerByte: 2 * time.Microsecond,
	Heap:       2 << 20,
	PerByte:    512,
}

// ask serves a request. It fails the test if the request costs too much or causes an internal
// error.
func (w *world) ask(t *testing.T, method, path string, header http.Header, body string) {
	t.Helper()
	size := len(path) + len(body)
	for _, values := range header {
		size += len(strings.Join(values, ""))
	}

	requestBound.Check(t, size, func() {
		req := httptest.NewRequest(method, "/", strings.NewReader(body))
		req.URL.Path, req.URL.RawQuery, _ = strings.Cut(path, "?")
		req.Header = header.Clone()
		res := httptest.NewRecorder()
		w.handler.ServeHTTP(res, req)
		if res.Code >= 500 {
			t.Errorf("%s %q with %v and %q: status %d, want no internal error: %s",
				method, path, header, body, res.Code, res.Body)
		}

		location := res.Header().Get("Location")
		isRegistered := strings.HasPrefix(location, callback+"?") || strings.HasPrefix(location, "/")
		if strings.Contains(location, "evil.example/") && !isRegistered {
			t.Errorf("%s %q is redirected to %q, want a registered redirect URI", method, path, location)
		}
	})
}

// FuzzAuthorize sends authorization requests with arbitrary parameters.
func FuzzAuthorize(f *testing.F) {
	w := newWorld(f)
	c, _ := w.client(nil)
	p := w.signer(f, nil)
	good := request(c, "state", "").Encode()
	for _, more := range []string{
		"", "prompt=none", "max_age=1e9", "claims=%7B%22id_token%22%3A%7B%22sub%22%3A%7B%22value%22%3A%22x%22%7D%7D%7D",
		"id_token_hint=" + strings.Repeat(".", 8_000), "ui_locales=" + strings.Repeat("de+", 4_000),
		"acr_values=" + strings.Repeat("2+", 7_000), "resource=https%3A%2F%2Fevil.example%2F",
		strings.Repeat("resource=a&", 1_300),
		"prompt=" + strings.Repeat("login+", 2_500), "login_hint=" + strings.Repeat("%EF%B7%BA", 1_700),
		"state=" + strings.Repeat("%0d%0a", 2_500), strings.Repeat("&", 15_000),
		"response_mode=form_post&state=%3Cscript%3E",
		"claims=" + strings.Repeat("[", 15_000), "redirect_uri=https%3A%2F%2Fevil.example%2F",
	} {
		f.Add(good + "&" + more)
	}

	for _, object := range []string{
		p.sign(f, p.object()), "a.b.c", strings.Repeat("A", 12_000),
		"eyJhbGciOiJub25lIn0." + strings.Repeat("W1tb", 3_000) + ".", strings.Repeat("eyJ", 4_000) + ".e30.AA",
	} {
		f.Add("client_id=" + p.c.ID + "&request=" + object)
		f.Add("client_id=" + p.c.ID + "&request_uri=urn:ietf:params:oauth:request_uri:" + object)
	}
	f.Add("client_id=" + c.ID + "&redirect_uri=https%3A%2F%2Fevil.example%2F")
	f.Add("client_id=" + strings.Repeat("%EF%B7%BA", 1_700) + "&redirect_uri=x")

	f.Fuzz(func(t *testing.T, query string) {
		w.ask(t, "GET", "/login/oauth/authorize?"+query, http.Header{"Accept-Language": {"de"}}, "")
	})
}

// FuzzToken sends arbitrary credentials and forms to the token endpoint and similar endpoints.
func FuzzToken(f *testing.F) {
	const form = "application/x-www-form-urlencoded"
	w := newWorld(f)
	c, clientSecret := w.client(func(c *idp.Client) { c.Type = idp.Web })
	own := basic(c.ID, clientSecret)
	redirect := "&redirect_uri=" + url.QueryEscape(callback)
	assertionType := url.QueryEscape(idp.AssertionType)

	for _, seed := range []struct{ authorization, contentType, body string }{
		{own, form, "grant_type=authorization_code&code=a" + redirect},
		{own, form, "grant_type=refresh_token&refresh_token=a..b.c.d"},
		{own, form, "response_type=code" + redirect + "&scope=openid&code_challenge=" +
			challenge + "&code_challenge_method=S256"},
		{own, form, "token=" + strings.Repeat(".", 16<<10)},
		{own, form, "token=" + strings.Repeat("A", 30<<10)},
		{"Basic Og==", form, "client_id=a&client_secret=b"},
		{"Basic " + strings.Repeat("JTI1", 8_000), form, ""},
		{"", form, "grant_type=client_credentials&client_id=" + c.ID +
			"&client_secret=" + strings.Repeat("%25", 9_000)},
		{"", form, "client_assertion_type=" + assertionType + "&client_assertion=" + strings.Repeat("a.", 12_000)},
		{"", form, strings.Repeat("a=&", 10_000)},
		{"", form, strings.Repeat("&", 30_000)},
		{"", "application/json", `{"grant_type":"password"}`},
		{"", "application/json", strings.Repeat("[", 9_000)},
		{"", "multipart/form-data; boundary=x", "--x--"},
		{"", form + strings.Repeat(";a=b", 2_000), ""},
	} {
		f.Add(seed.authorization, seed.contentType, seed.body)
	}

	f.Fuzz(func(t *testing.T, authorization, contentType, body string) {
		header := http.Header{"Content-Type": {contentType}}
		if authorization != "" {
			header["Authorization"] = []string{authorization}
		}
		for _, path := range []string{
			"/oauth/token", "/oauth/introspect", "/oauth/revoke", "/oauth/device_authorization", "/oauth/par",
		} {
			w.ask(t, "POST", path, header, body)
		}
	})
}

// FuzzCookie sends arbitrary cookies to the pages that read them.
func FuzzCookie(f *testing.F) {
	w := newWorld(f)
	for _, header := range []string{
		"selvage=a; selvage-flow=b; selvage-device=c.d", "__Host-selvage=" + strings.Repeat("A", 30_000),
		"selvage=" + strings.Repeat("%25", 10_000), strings.Repeat("selvage=a; ", 3_000), strings.Repeat(";", 30_000),
		"selvage-flow=ABCDEFGHIJKLMNOPQRSTUVWXYZ; selvage-device=" + strings.Repeat(".", 30_000), `selvage="\x00"`,
	} {
		f.Add(header)
	}

	f.Fuzz(func(t *testing.T, header string) {
		for _, path := range []string{"/account?project=" + w.project.ID, "/device", "/oauth/logout", "/login?id=a"} {
			w.ask(t, "GET", path, http.Header{"Cookie": {header}}, "")
		}
	})
}

// FuzzBearer sends arbitrary access tokens to the endpoints that accept them.
func FuzzBearer(f *testing.F) {
	w := newWorld(f)
	for _, token := range []string{
		"a", "a..b.c.d", "eyJhbGciOiJub25lIn0.e30.", strings.Repeat(".", 30_000), strings.Repeat("A", 30_000), "a b",
		"\x00", strings.Repeat("eyJ", 5_000) + ".e30.AA",
	} {
		f.Add(token)
	}

	f.Fuzz(func(t *testing.T, token string) {
		w.ask(t, "GET", "/oauth/userinfo", http.Header{"Authorization": {"Bearer " + token}}, "")
	})
}
