package oidc_test

import (
	"net/http"
	"net/url"
	"testing"
	"time"
)

// TestBeginAgain shows that a login whose request has expired starts over with the email address
// that was typed. It does so only in the browser that began the login, and only until the login has
// been answered.
func TestBeginAgain(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	b, other := w.newBrowser(), w.newBrowser()

	page := b.authorize(request(c))
	wantNoText(t, "a first login page", page, "login-again")

	id := hiddenID.FindStringSubmatch(page.body)[1]
	w.empty()
	// A redirect could loop here.
	immediate := b.logIn(page, "grace@example.com", "typed")
	wantStatus(t, "a request that expires immediately", immediate, http.StatusBadRequest)

	// Another browser or another request does not start over.
	w.pass(time.Minute)
	stolen := other.get("/login?id=" + id)
	wantStatus(t, "the page in another browser", stolen, http.StatusBadRequest)
	wantNoText(t, "the page in another browser", stolen, "login-submit")
	wantStatus(t, "another request in the same browser", b.get("/login?id=another"), http.StatusBadRequest)

	again := b.logIn(page, "grace@example.com", "typed")
	wantStatus(t, "the login that starts again", again, http.StatusOK)
	wantText(t, "the login that starts again", again, `id="login-again"`, `value="grace@example.com"`)
	wantNoText(t, "the login that starts again", again, "typed")

	// The new request is answered once.
	done := b.logIn(again, email, secret)
	wantCode(t, "the login that started again", done)
	wantParam(t, "the login that started again", done, "state", "s")
	w.pass(time.Minute)
	late := b.logIn(again, email, secret)
	wantStatus(t, "a request that was already answered", late, http.StatusBadRequest)
	if late.location != nil {
		t.Errorf("a request that was already answered redirects to %v, want a page", late.location)
	}
}

// TestForgotKeepsEmail shows that the page for a forgotten password keeps the email address that
// was typed. A password typed with it is not checked.
func TestForgotKeepsEmail(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	b := w.newBrowser()
	id := hiddenID.FindStringSubmatch(b.authorize(request(c)).body)[1]
	got := b.post("/login", url.Values{
		"id":       {id},
		"username": {email},
		"password": {secret},
		"forgot":   {"yes"},
	})
	wantStatus(t, "the page for a new password", got, http.StatusOK)
	wantText(t, "the page for a new password", got, "forgot-submit", `value="`+email+`"`)
	wantParam(t, "the page for a new password", got, "code", "")
}
