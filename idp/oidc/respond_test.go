package oidc_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/selvage/selvage/idp"
)

// TestResponseModes shows that codes and errors are sent in the requested response mode.
func TestResponseModes(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(func(n *idp.Client) { n.RedirectURIs = []string{callback + "?a=b"} })
	b := w.browser()

	for _, tt := range []struct{ kind, mode, want string }{
		{"code", "", "&"}, {"code", "query", "&"}, {"code", "fragment", "#"}, {"code", "form_post", ""},
		{"token", "", "#"}, {"code id_token", "", "#"}, {"token", "query", "#"}, {"token", "form_post", ""},
		{"code", "web_message", "&"}, {"code", "fragment query", "&"},
	} {
		for _, prompt := range []string{"", "none"} {

			got := b.authorize(request(c, "response_type", tt.kind, "response_mode", tt.mode, "prompt", prompt))
			if strings.Contains(got.body, `id="login-submit"`) {
				got = b.logIn(got, email, secret)
			}

			good := tt.kind == "code" && !strings.Contains(tt.mode, "message") && !strings.Contains(tt.mode, " ")
			if got.param("state") != "s" || got.param("iss") != w.url+"/" ||
				(got.param("code") != "") != good || (got.param("error") == "") != good {
				t.Errorf("%+v, prompt %q: %d %v", tt, prompt, got.status, got.parameters())
			}

			switch {
			case tt.want == "" && (got.location != nil || got.status != http.StatusOK ||
				!strings.Contains(got.body, `<form method="post" action="`+callback+`?a=b">`)):
				t.Errorf("%+v: no form for the client: %d %v %s", tt, got.status, got.location, got.body)
			case tt.want != "" && (got.location == nil || got.status != http.StatusSeeOther ||
				!strings.HasPrefix(got.location.String(), callback+"?a=b"+tt.want)):
				t.Errorf("%+v: %d to %v", tt, got.status, got.location)
			}
		}
	}
}

// TestRequestObjectRefused shows that the error for a request object is sent with the response mode
// and the state in the object. Parameters of the request itself take precedence. Invalid values are
// ignored.
func TestRequestObjectRefused(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)

	object := func(claims string) string {
		return "eyJhbGciOiJub25lIn0." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + "."
	}

	for _, tt := range []struct {
		state, mode, request string
		status               int
		want                 string
	}{
		{"", "", object(`{"state":"o","response_mode":"form_post"}`), http.StatusOK, "o"},
		{"", "", object(`{"state":"o"}`), http.StatusSeeOther, "o"},
		{"s", "", object(`{"state":"o","response_mode":"form_post"}`), http.StatusOK, "s"},
		{"s", "query", object(`{"state":"o","response_mode":"form_post"}`), http.StatusSeeOther, "s"},
		{"", "", object(`{"state":"o","response_mode":"form_post.jws"}`), http.StatusSeeOther, "o"},
		{"", "", object(`{"state":"a\nb","response_mode":"form_post"}`), http.StatusSeeOther, "a\nb"},
		{"", "", object(`{"state":"` + strings.Repeat("s", 4097) + `","response_mode":"form_post"}`),
			http.StatusSeeOther, ""},
		{"", "", object(`{"state":1,"response_mode":"form_post"}`), http.StatusSeeOther, ""},
		{"", "", object(`null`), http.StatusSeeOther, ""},
		{"", "", "x.!.z", http.StatusSeeOther, ""},
		{"", "", "x.y", http.StatusSeeOther, ""},
	} {

		got := w.browser().authorize(request(c, "state", tt.state, "response_mode", tt.mode, "request", tt.request))
		if got.status != tt.status || got.param("error") != "request_not_supported" || got.param("state") != tt.want {
			t.Errorf("%.60s: %d %v, want request_not_supported and the state of the case",
				tt.request, got.status, got.parameters())
		}
	}
}

// TestResponseModeOfDenial shows that errors after a denial are also sent in the requested mode.
func TestResponseModeOfDenial(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(func(n *idp.Client) { n.FirstParty = false })
	for mode, want := range map[string]int{"fragment": http.StatusSeeOther, "form_post": http.StatusOK} {
		b := w.browser()
		page := b.logIn(b.authorize(request(c, "response_mode", mode)), email, secret)
		got := b.consent(page, "deny")
		if got.status != want || got.param("error") != "access_denied" || got.param("state") != "s" {
			t.Errorf("%s: the denial is sent with %d %v, want access_denied", mode, got.status, got.parameters())
		}
	}
}

// TestFormPostLimits shows that a form is not used for values that it would alter.
func TestFormPostLimits(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	native, _ := w.client(func(n *idp.Client) {
		n.Type, n.RedirectURIs = idp.Native, []string{"com.dialer.app://cb"}
	})
	odd, _ := w.client(func(n *idp.Client) { n.Type, n.RedirectURIs = idp.Native, []string{"http.dialer.app://cb"} })

	b := w.browser()
	b.code(c)

	for _, state := range []string{`"><script>alert(1)</script>`, "\u202e", "a b+c%20&amp;",
		strings.Repeat("s", 4096)} {
		if got := b.authorize(request(c, "response_mode", "form_post", "state",
			state)); got.param("state") != state || strings.Contains(got.body, "<script>") {
			t.Errorf("state %.20q is returned as %.20q in %s", state, got.param("state"), got.body)
		}
	}

	// A form cannot contain line breaks and NUL unchanged.
	for _, state := range []string{"a\r\nb", "a\nb", "\x00"} {
		got := b.authorize(request(c, "response_mode", "form_post", "state", state))
		if got.location == nil || got.param("error") != "invalid_request" || got.param("state") != state {
			t.Errorf("state %q: %d %v, want invalid_request", state, got.status, got.parameters())
		}
	}

	// A form cannot be posted to a URI with an app's private scheme.
	for _, c := range []idp.Client{native, odd} {
		got := b.authorize(request(c, "response_mode", "form_post"))
		if got.location == nil || got.param("error") != "invalid_request" ||
			!strings.HasSuffix(got.location.Scheme, ".app") {
			t.Errorf("form_post to an app without a host: %d %v, want invalid_request by redirect",
				got.status, got.location)
		}
	}
}

// TestFraming shows that only the page that answers a prompt=none request may be in a frame, and
// only in a frame of the app.
func TestFraming(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	b := w.browser()

	for _, answer := range []string{"error", "code"} {
		for _, tt := range []struct{ name, prompt, framers string }{{"silent", "none", "https://app.example"},
			{"not silent", "", "'none'"}} {
			got := b.authorize(request(c, "response_mode", "form_post", "prompt", tt.prompt))
			csp, other := got.header.Get("Content-Security-Policy"), got.header.Get("X-Frame-Options")
			if !strings.Contains(csp, "frame-ancestors "+tt.framers+";") ||
				(other == "DENY") != (tt.prompt == "") || tt.prompt != "" && got.param(answer) == "" {
				t.Errorf("%s, %s: %d %q %q %v", answer, tt.name, got.status, csp, other, got.parameters())
			}

			if csp := got.header.Get("Content-Security-Policy"); strings.Contains(csp, "unsafe") ||
				!strings.Contains(csp, "default-src 'none'") {
				t.Errorf("%s, %s: Content-Security-Policy %q", answer, tt.name, csp)
			}
		}
		b.code(c)
	}

	// The page that sends the error of a prompt=none request may be in a frame. An error page may
	// not.
	bad := b.authorize(request(c, "response_mode", "form_post", "prompt", "none", "scope", "bogus"))
	if bad.param("error") != "invalid_scope" || bad.header.Get("X-Frame-Options") != "" {
		t.Errorf("a failed prompt=none request: %v %v, want invalid_scope and no X-Frame-Options",
			bad.parameters(), bad.header)
	}
	unproven := b.authorize(request(c, "redirect_uri", "https://evil.example/cb", "prompt", "none"))
	if unproven.header.Get("X-Frame-Options") != "DENY" ||
		!strings.Contains(unproven.header.Get("Content-Security-Policy"), "frame-ancestors 'none'") {
		t.Errorf("the error page of an unverified redirect URI: %v, want headers that forbid frames", unproven.header)
	}
}

// TestDescriptions shows that an error_description contains only the characters of RFC 6749,
// section 5.2, even if it quotes the client.
func TestDescriptions(t *testing.T) {
	w := newWorld(t)
	b := w.bank(t, nil)
	b.kid = "k\"\\é"
	refused := b.post(t, "/oauth/par", request(b.c)).json(t)
	c, _ := w.client(nil)
	sent := w.browser().authorize(request(c, "scope", "openid \"\\é"))

	for name, got := range map[string]string{
		"a token endpoint": text(refused["error_description"]), "a redirect": sent.param("error_description"),
	} {
		bad := func(c rune) bool { return c < ' ' || c > '~' || c == '"' || c == '\\' }
		if got == "" || strings.ContainsFunc(got, bad) {
			t.Errorf("%s says %q, want printable ASCII without quotes and backslashes", name, got)
		}
	}
	if !strings.Contains(text(refused["error_description"]), "kid 'k'") {
		t.Errorf("the description does not quote the kid: %v", refused)
	}
}
