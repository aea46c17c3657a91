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

// resigned returns a JWT with the same header and claims, signed with a different key.
func resigned(t *testing.T, token string) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	signed := token[:strings.LastIndexByte(token, '.')]
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	must(t, err)
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// TestRPInitiatedLogout has a case for each module of the RP-Initiated Logout certification plan.
// Each case has the name of its module.
func TestRPInitiatedLogout(t *testing.T) {
	const state = "a state of 0123"
	w := newWorld(t)
	c, _ := w.client(withLogout)

	const plan = "oidcc-rp-initiated-logout"
	for _, tt := range []struct {
		module       string
		change       func(params url.Values) // changes the hint, URI or state of the request
		wantRedirect string                  // "" means a page
		wantPage     string                  // ID of the page
		wantSignedIn bool                    // whether the logout is refused
	}{
		{
			module:       "",
			change:       func(url.Values) {},
			wantRedirect: goodbye + "?state=a+state+of+0123",
		},
		{
			module:       "-no-state",
			change:       func(params url.Values) { params.Del("state") },
			wantRedirect: goodbye,
		},
		{
			module:       "-bad-post-logout-redirect-uri",
			change:       func(params url.Values) { params.Set("post_logout_redirect_uri", goodbye+"/0123") },
			wantPage:     "error-page",
			wantSignedIn: true,
		},
		{
			module:       "-query-added-to-post-logout-redirect-uri",
			change:       func(params url.Values) { params.Set("post_logout_redirect_uri", goodbye+"?foo=bar") },
			wantPage:     "error-page",
			wantSignedIn: true,
		},
		{
			module: "-modified-id-token-hint",
			change: func(params url.Values) {
				parts := strings.Split(params.Get("id_token_hint"), ".")
				params.Set("id_token_hint", "eyJhbGciOiJub25lIn0."+parts[1]+".")
			},
			wantPage:     "error-page",
			wantSignedIn: true,
		},
		{
			module: "-bad-id-token-hint",
			change: func(params url.Values) {
				params.Set("id_token_hint", resigned(t, params.Get("id_token_hint")))
			},
			wantPage:     "error-page",
			wantSignedIn: true,
		},
		{
			module:       "-no-id-token-hint",
			change:       func(params url.Values) { params.Del("id_token_hint") },
			wantPage:     "error-page",
			wantSignedIn: true,
		},
		{
			module:   "-no-params",
			change:   func(params url.Values) { clear(params) },
			wantPage: "logout-confirm",
		},
		{
			module:   "-only-state",
			change:   func(params url.Values) { clear(params); params.Set("state", state) },
			wantPage: "logout-confirm",
		},
		{
			module: "-no-post-logout-redirect-uri",
			change: func(params url.Values) {
				params.Del("post_logout_redirect_uri")
				params.Del("state")
			},
			wantPage: "logged-out",
		},
	} {
		t.Run(plan+tt.module, func(t *testing.T) {
			b := w.newBrowser()
			params := url.Values{
				"id_token_hint":            {text(w.redeem(c, b.code(c)).json(t)["id_token"])},
				"post_logout_redirect_uri": {goodbye},
				"state":                    {state},
			}
			tt.change(params)
			got := b.get("/oauth/logout?" + params.Encode())
			if tt.wantRedirect != "" {
				wantRedirect(t, "the logout", got, tt.wantRedirect)
			} else {
				wantPage(t, "the logout", got, tt.wantPage)
			}
			if tt.wantPage == "logout-confirm" {
				wantPage(t, "confirming", b.submit(got), "logged-out")
			}
			wantSignedIn(t, "the browser afterwards", b, c, tt.wantSignedIn)
		})
	}

	t.Run(plan+"-discovery-endpoint-verification", func(t *testing.T) {
		doc := w.newBrowser().get("/.well-known/openid-configuration").json(t)
		wantMembers(t, "the metadata", doc, map[string]any{"end_session_endpoint": w.url + "/oauth/logout"})
	})
}

// wantPage checks that got is not a redirect, but a page that contains an element with this ID.
func wantPage(t *testing.T, name string, got reply, id string) {
	t.Helper()
	wantText(t, name, got, `id="`+id+`"`)
	if got.location != nil {
		t.Errorf("%s: a redirect to %v, want a page", name, got.location)
	}
}

// TestLogoutFault shows that the page of a refused logout names the cause: the app, its redirect
// URI or the request.
func TestLogoutFault(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(withLogout)
	const (
		appFault     = "from an unknown app"
		addressFault = "redirect address is not registered"
		requestFault = "The logout request is invalid"
	)

	for name, tt := range map[string]struct {
		params   url.Values
		wantText string
	}{
		"an unknown client": {
			params:   url.Values{"client_id": {"x"}, "post_logout_redirect_uri": {goodbye}},
			wantText: appFault,
		},
		"no client": {
			params:   url.Values{"post_logout_redirect_uri": {goodbye}},
			wantText: appFault,
		},
		"an unregistered address": {
			params:   url.Values{"client_id": {c.ID}, "post_logout_redirect_uri": {goodbye + "/x"}},
			wantText: addressFault,
		},
		"a foreign hint": {
			params:   url.Values{"client_id": {c.ID}, "id_token_hint": {"a.b.c"}},
			wantText: requestFault,
		},
		"a repeated parameter": {
			params:   url.Values{"client_id": {c.ID, c.ID}},
			wantText: requestFault,
		},
	} {
		got := w.newBrowser().get("/oauth/logout?" + tt.params.Encode())
		wantText(t, name, got, tt.wantText)
		for _, other := range []string{appFault, addressFault, requestFault} {
			if other != tt.wantText {
				wantNoText(t, name, got, other)
			}
		}
	}
}

// TestLogoutOfAnOlderLogin shows that a logout with the ID token of an older login ends that login.
// It also ends the login that replaced it in the browser.
func TestLogoutOfAnOlderLogin(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(withLogout)
	b := w.newBrowser()
	before := w.redeem(c, b.code(c)).json(t)
	page := b.authorize(request(c, "prompt", "login"))
	after := w.redeem(c, b.logIn(page, email, secret).param("code")).json(t)

	b.endSession("id_token_hint", text(before["id_token"]))
	w.lives("the older and the newer login", false, before, after)
	wantSignedIn(t, "the browser", b, c, false)
}
