package oidc_test

import (
	"strings"
	"testing"
	"time"
)

// TestBeginAgain shows that a login whose request has expired starts over with the email address
// that was typed. It does so only in the browser that began the login, and only until the login has
// been answered.
func TestBeginAgain(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	b, other := w.browser(), w.browser()

	page := b.authorize(request(c))
	if strings.Contains(page.body, "login-again") {
		t.Error("a first login says that it has started again")
	}

	stolen := hiddenID.FindStringSubmatch(page.body)[1]
	w.empty()
	if got := b.logIn(page, "grace@example.com", "typed"); got.status != 400 {
		t.Errorf("a request that expires immediately: %d, want 400 instead of a redirect loop", got.status)
	}

	// Another browser or another request does not start over.
	w.pass(time.Minute)
	if got := other.get("/login?id=" + stolen); got.status != 400 || strings.Contains(got.body, "login-submit") {
		t.Errorf("the page in another browser: %d, want 400", got.status)
	}
	if got := b.get("/login?id=another"); got.status != 400 {
		t.Errorf("another request in the same browser: %d, want 400", got.status)
	}

	again := b.logIn(page, "grace@example.com", "typed")
	if again.status != 200 || !strings.Contains(again.body, `id="login-again"`) ||
		!strings.Contains(again.body, `value="grace@example.com"`) || strings.Contains(again.body, "typed") {
		t.Fatalf("the login does not start again with the email: %d %s", again.status, again.body)
	}

	// The new request is answered once.
	done := b.logIn(again, email, secret)
	if done.param("code") == "" || done.param("state") != "s" {
		t.Fatalf("the login that started again: %d %v, want a code", done.status, done.location)
	}
	w.pass(time.Minute)
	if got := b.logIn(again, email, secret); got.status != 400 || got.location != nil {
		t.Errorf("a request that was already answered: %d %v, want 400", got.status, got.location)
	}
}

// TestForgotKeepsEmail shows that the page for a forgotten password keeps the email address that
// was typed. A password typed with it is not checked.
func TestForgotKeepsEmail(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	b := w.browser()
	id := hiddenID.FindStringSubmatch(b.authorize(request(c)).body)[1]
	got := b.post("/login", map[string][]string{"id": {id}, "username": {email}, "password": {secret},
		"forgot": {"yes"}})
	if got.status != 200 || !strings.Contains(got.body, "forgot-submit") ||
		!strings.Contains(got.body, `value="`+email+`"`) || got.param("code") != "" {
		t.Errorf("the page for a new password: %d %s, want the form with the email", got.status, got.body)
	}
}
