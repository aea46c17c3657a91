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
	u, err := url.Parse(b.w.url)
	must(b.w.t, err)
	for _, c := range b.http.Jar.Cookies(u) {
		if strings.HasSuffix(c.Name, "selvage-state") {
			return c.Value
		}
	}
	return ""
}

// isUnchanged reports whether state matches the browser state, in the same way as the page in the
// frame (OpenID Connect Session Management 1.0, section 3.2).
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
	b := w.browser()
	page := b.authorize(request(c))
	first := b.logIn(page, email, secret)
	state := first.param("session_state")
	if !isUnchanged(c.ID, origin, b.browserState(), state) {
		t.Fatalf("session_state = %q for the browser state %q, want one that matches", state, b.browserState())
	}
	if isUnchanged(c.ID, "https://other.example", b.browserState(), state) {
		t.Error("the session_state holds for another origin")
	}

	silent := b.authorize(request(c, "prompt", "none"))
	again := silent.param("session_state")
	if again == state || !isUnchanged(c.ID, origin, b.browserState(), again) {
		t.Errorf("a second session_state is %q, want another salt and the same browser state", again)
	}

	b.submit(b.get("/logout"))
	if b.browserState() == "" || isUnchanged(c.ID, origin, b.browserState(), again) {
		t.Errorf("after the logout, the session_state still holds for %q, want a state that does not match",
			b.browserState())
	}
}

// TestNoSessionState shows which responses have no session_state.
func TestNoSessionState(t *testing.T) {
	w := newWorld(t)
	native, _ := w.client(func(n *idp.Client) {
		n.Type, n.RedirectURIs = idp.Native, []string{"com.example.app:/cb"}
	})
	spa, _ := w.client(nil)
	b := w.browser()
	b.code(spa)

	for name, v := range map[string]url.Values{
		"a native app":      request(native, "redirect_uri", "com.example.app:/cb", "prompt", "none"),
		"no ID token":       request(spa, "scope", "Voice", "prompt", "none"),
		"an error response": request(spa, "prompt", "none login"),
	} {
		if got := b.authorize(v); got.location == nil || got.param("session_state") != "" {
			t.Errorf("%s: %d to %v, want a redirect without session_state", name, got.status, got.location)
		}
	}
}

// TestCheckSession shows that the page that compares session states is the only page that any site
// may have in a frame.
func TestCheckSession(t *testing.T) {
	b := newWorld(t).browser()
	doc := b.get("/.well-known/openid-configuration").json(t)
	if doc["check_session_iframe"] != b.w.url+"/oauth/check-session" {
		t.Errorf("check_session_iframe = %v, want /oauth/check-session", doc["check_session_iframe"])
	}

	got := b.get("/oauth/check-session")
	csp := got.header.Get("Content-Security-Policy")
	if got.status != http.StatusOK || !strings.Contains(csp, "frame-ancestors *;") ||
		got.header.Get("X-Frame-Options") != "" || !strings.Contains(got.body, "/static/check-session.") {
		t.Errorf("the page: %d, %q, %q, %s, want 200 and a page that any site may frame",
			got.status, csp, got.header.Get("X-Frame-Options"), got.body)
	}
	if csp := b.get("/logout").header.Get("Content-Security-Policy"); !strings.Contains(csp, "frame-ancestors 'none'") {
		t.Errorf("the logout page may be framed: %q", csp)
	}
}
