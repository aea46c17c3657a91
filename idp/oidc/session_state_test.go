package oidc_test

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/selvage/selvage/idp"
)

// browserState returns the cookie that the session iframe reads, or "".
func (b *browser) browserState() string {
	b.w.t.Helper()
	home, err := url.Parse(b.w.url)
	must(b.w.t, err)
	for _, cookie := range b.http.Jar.Cookies(home) {
		if strings.HasSuffix(cookie.Name, "selvage-state") {
			return cookie.Value
		}
	}
	return ""
}

// isUnchanged reports whether a session state matches the browser state. It compares them in the same way
// as the page in the frame (OpenID Connect Session Management 1.0, section 3.2).
func isUnchanged(client, origin, browser, state string) bool {
	digest, salt, _ := strings.Cut(state, ".")
	sum := sha256.Sum256([]byte(client + " " + origin + " " + browser + " " + salt))
	return salt != "" && hex.EncodeToString(sum[:]) == digest
}

// TestSessionState shows that a response has a session_state that is valid until the browser's
// logins change.
func TestSessionState(t *testing.T) {
	const origin = "https://app.example"
	w := newWorld(t)
	c, _ := w.client(withLogout)
	b := w.newBrowser()
	page := b.authorize(request(c))
	state := b.logIn(page, email, secret).param("session_state")
	if !isUnchanged(c.ID, origin, b.browserState(), state) {
		t.Fatalf("session_state = %q for the browser state %q, want one that matches", state, b.browserState())
	}
	if isUnchanged(c.ID, "https://other.example", b.browserState(), state) {
		t.Error("the session_state is valid for another origin")
	}

	again := b.authorize(request(c, "prompt", "none")).param("session_state")
	if again == state {
		t.Errorf("a second session_state is also %q, want another salt", again)
	}
	if !isUnchanged(c.ID, origin, b.browserState(), again) {
		t.Errorf("the second session_state %q does not match the browser state %q", again, b.browserState())
	}

	b.signOut()
	if b.browserState() == "" {
		t.Error("after the logout, the browser has no state, want one")
	}
	if isUnchanged(c.ID, origin, b.browserState(), again) {
		t.Errorf("after the logout, the session_state %q matches %q, want no match", again, b.browserState())
	}
}

// TestSessionStateOrigin shows that the session_state is valid for the origin that browsers report for
// the page at a redirect URI, no matter how the URI is written.
func TestSessionStateOrigin(t *testing.T) {
	w := newWorld(t)
	for uri, origin := range map[string]string{
		"https://App.Example:443/cb":  "https://app.example",
		"https://app.example:/cb":     "https://app.example",
		"https://app.example:8443/cb": "https://app.example:8443",
		"http://localhost:80/cb":      "http://localhost",
		"http://[::1]:443/cb":         "http://[::1]:443",
	} {
		c, _ := w.client(func(n *idp.Client) { n.RedirectURIs = []string{uri} })
		b := w.newBrowser()
		state := b.logIn(b.authorize(request(c)), email, secret).param("session_state")
		if !isUnchanged(c.ID, origin, b.browserState(), state) {
			t.Errorf("%s: the session_state %q is not valid for the origin %s", uri, state, origin)
		}
	}
}

// TestNoSessionState shows which responses have no session_state.
func TestNoSessionState(t *testing.T) {
	w := newWorld(t)
	native, _ := w.client(func(n *idp.Client) {
		n.Type, n.RedirectURIs = idp.Native, []string{"com.example.app:/cb"}
	})
	spa, _ := w.client(nil)
	b := w.newBrowser()
	b.code(spa)

	for name, params := range map[string]url.Values{
		"a native app":      request(native, "redirect_uri", "com.example.app:/cb", "prompt", "none"),
		"no ID token":       request(spa, "scope", "Voice", "prompt", "none"),
		"an error response": request(spa, "prompt", "none login"),
	} {
		got := b.authorize(params)
		wantSentTo(t, name, got, params.Get("redirect_uri"))
		wantParam(t, name, got, "session_state", "")
	}
}

// TestCheckSession shows that any site may load the page that compares session states in a frame, and that
// no site may load the logout page in a frame.
func TestCheckSession(t *testing.T) {
	b := newWorld(t).newBrowser()
	doc := b.get("/.well-known/openid-configuration").json(t)
	wantMembers(t, "the metadata", doc, map[string]any{"check_session_iframe": b.w.url + "/oauth/check-session"})

	got := b.get("/oauth/check-session")
	wantStatus(t, "the page", got, http.StatusOK)
	wantText(t, "the page", got, "/static/check-session.")
	wantHeader(t, "the page", got, "X-Frame-Options", "")
	if policy := got.header.Get("Content-Security-Policy"); !strings.Contains(policy, "frame-ancestors *;") {
		t.Errorf("the policy of the page is %q, want one that lets any site frame it", policy)
	}
	wantFramers(t, "the logout page", b.get("/logout"), "'none'")
}
