package oidc_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"strings"
	"testing"
)

// forged returns a JWT with the same header and claims, signed with a different key.
func forged(t *testing.T, token string) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	said := token[:strings.LastIndexByte(token, '.')]
	sum := sha256.Sum256([]byte(said))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	must(t, err)
	return said + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// TestRPInitiatedLogout has a case for each module of the RP-Initiated Logout certification plan.
// Each case has the name of its module.
func TestRPInitiatedLogout(t *testing.T) {
	const state = "a state of 0123"
	w := newWorld(t)
	c, _ := w.client(withLogout)

	tests := []struct {
		module string
		change func(v url.Values) // changes the hint, URI or state of the request
		want   string             // URL to which the browser is redirected, or ID of the page
	}{
		{"oidcc-rp-initiated-logout", func(url.Values) {}, goodbye + "?state=a+state+of+0123"},
		{"oidcc-rp-initiated-logout-no-state", func(v url.Values) { v.Del("state") }, goodbye},
		{"oidcc-rp-initiated-logout-bad-post-logout-redirect-uri", func(v url.Values) {
			v.Set("post_logout_redirect_uri", goodbye+"/0123")
		}, "error-page"},
		{"oidcc-rp-initiated-logout-query-added-to-post-logout-redirect-uri", func(v url.Values) {
			v.Set("post_logout_redirect_uri", goodbye+"?foo=bar")
		}, "error-page"},
		{"oidcc-rp-initiated-logout-modified-id-token-hint", func(v url.Values) {
			parts := strings.Split(v.Get("id_token_hint"), ".")
			v.Set("id_token_hint", "eyJhbGciOiJub25lIn0."+parts[1]+".")
		}, "error-page"},
		{"oidcc-rp-initiated-logout-bad-id-token-hint", func(v url.Values) {
			v.Set("id_token_hint", forged(t, v.Get("id_token_hint")))
		}, "error-page"},
		{"oidcc-rp-initiated-logout-no-id-token-hint", func(v url.Values) { v.Del("id_token_hint") }, "error-page"},
		{"oidcc-rp-initiated-logout-no-params", func(v url.Values) { clear(v) }, "logout-confirm"},
		{"oidcc-rp-initiated-logout-only-state", func(v url.Values) { clear(v); v.Set("state", state) },
			"logout-confirm"},
		{"oidcc-rp-initiated-logout-no-post-logout-redirect-uri", func(v url.Values) {
			v.Del("post_logout_redirect_uri")
			v.Del("state")
		}, "logged-out"},
	}

	for _, tt := range tests {
		t.Run(tt.module, func(t *testing.T) {
			b := w.browser()
			v := url.Values{"id_token_hint": {text(w.redeem(c, b.code(c)).json(t)["id_token"])},
				"post_logout_redirect_uri": {goodbye}, "state": {state}}

			// The browser is redirected or shows a page.
			tt.change(v)
			got := b.get("/oauth/logout?" + v.Encode())
			if strings.HasPrefix(tt.want, "https:") {
				if got.location == nil || got.location.String() != tt.want {
					t.Errorf("logout: %d to %v, want %s", got.status, got.location, tt.want)
				}
			} else if got.location != nil || !strings.Contains(got.body, `id="`+tt.want+`"`) {
				t.Errorf("logout: %d to %v, want a page with #%s", got.status, got.location, tt.want)
			}

			if tt.want == "logout-confirm" {
				if got = b.submit(got); got.location != nil || !strings.Contains(got.body, `id="logged-out"`) {
					t.Errorf("confirming: %d to %v, want the page that reports the logout", got.status, got.location)
				}
			}

			if in := b.signedIn(c); in != (tt.want == "error-page") {
				t.Errorf("signed in afterwards: %v, want this only after an error", in)
			}
		})
	}

	t.Run("oidcc-rp-initiated-logout-discovery-endpoint-verification", func(t *testing.T) {
		if doc := w.browser().get("/.well-known/openid-configuration").json(
			t); doc["end_session_endpoint"] != w.url+"/oauth/logout" {
			t.Errorf("end_session_endpoint = %v, want /oauth/logout", doc["end_session_endpoint"])
		}
	})
}

// TestLogoutFault shows that the page of a refused logout names the cause: the app, its redirect
// URI or the request.
func TestLogoutFault(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(withLogout)
	const app, address, request = "from an unknown app", "redirect address is not registered",
		"The logout request is invalid"
	for name, tt := range map[string]struct {
		v    url.Values
		want string
	}{
		"an unknown client": {url.Values{"client_id": {"x"}, "post_logout_redirect_uri": {goodbye}}, app},
		"no client":         {url.Values{"post_logout_redirect_uri": {goodbye}}, app},
		"an unregistered address": {url.Values{"client_id": {c.ID},
			"post_logout_redirect_uri": {goodbye + "/x"}}, address},
		"a foreign hint":       {url.Values{"client_id": {c.ID}, "id_token_hint": {"a.b.c"}}, request},
		"a repeated parameter": {url.Values{"client_id": {c.ID, c.ID}}, request},
	} {
		got := w.browser().get("/oauth/logout?" + tt.v.Encode())
		for _, sentence := range []string{app, address, request} {
			if strings.Contains(got.body, sentence) != (sentence == tt.want) {
				t.Errorf("%s: %d with %q: %v", name, got.status, sentence, sentence != tt.want)
			}
		}
	}
}

// TestLogoutOfAnOlderLogin shows that a logout with the ID token of an older login ends that login.
// It also ends the login that replaced it in the browser.
func TestLogoutOfAnOlderLogin(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(withLogout)
	b := w.browser()
	before := w.redeem(c, b.code(c)).json(t)
	page := b.authorize(request(c, "prompt", "login"))
	after := w.redeem(c, b.logIn(page, email, secret).param("code")).json(t)

	b.get("/oauth/logout?" + url.Values{"id_token_hint": {text(before["id_token"])}}.Encode())
	for name, set := range map[string]map[string]any{"before": before, "after": after} {
		if got := w.userinfo(text(set["access_token"])); got.status != 401 {
			t.Errorf("the access token of the login %s: %d, want 401", name, got.status)
		}
	}
	if b.signedIn(c) {
		t.Error("the browser is still signed in")
	}
}
