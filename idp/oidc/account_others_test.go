package oidc_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/selvage/selvage/fabric"
)

// logInAs signs the browser in to the account page as the subscriber with this email.
func (b *browser) logInAs(email string) reply {
	b.w.t.Helper()
	return b.logIn(b.get("/account?project="+b.w.project.ID), email, secret)
}

// TestUnsentFormOfAnother shows that a form that one subscriber left unsent cannot be sent by the next
// person who signs in to the same browser, because they would not know what it changes.
func TestUnsentFormOfAnother(t *testing.T) {
	w := newWorld(t)
	grace := w.subscriber("grace@example.com")
	b := w.browser()
	const path = "/account/email"
	typed := with(formOf(t, b.account(), path), "email", "eve@example.com")
	w.endLogins()
	left := formOf(t, b.fromPage(path, typed), path)

	b.logInAs(grace.Email)
	left.Set("project", w.project.ID)
	got := b.fromPage(path, left)
	if got.status != http.StatusForbidden || strings.Contains(got.body, "eve@example.com") ||
		strings.Contains(got.body, "Send the form now?") {
		t.Errorf("a form of ada, sent by grace: %d %s, want a refusal that keeps nothing", got.status, got.body)
	}

	made := with(typed, "token", "AAAA.AAAA.AAAA")
	if got := b.fromPage(path, made); strings.Contains(got.body, "Send the form now?") {
		t.Errorf("a form with a made-up token: %d %s, want a refusal that keeps nothing", got.status, got.body)
	}
}

// TestInvitationInAnothersBrowser shows that the page after an invitation names nobody if the invited
// person must sign in, even if another person is signed in to the browser.
func TestInvitationInAnothersBrowser(t *testing.T) {
	w := newWorld(t)
	b := w.browser()
	b.account()
	link := w.invite("grace@example.com")
	yes := true
	_, err := w.fabric.Projects.Update(t.Context(), w.project.ID, fabric.ProjectChange{RequireFactor: &yes})
	must(t, err)

	form := formOf(t, b.get(link), "/invite")
	form.Set("password", "granite-otter-nine")
	got := b.post("/invite", form)
	if !strings.Contains(got.body, `id="notice-account"`) || strings.Contains(got.body, w.ada.Title()) ||
		strings.Contains(got.body, email) {
		t.Errorf("the page after grace's invitation in ada's browser: %d %s, want a link to sign in and no name",
			got.status, got.body)
	}
}

// TestRememberedForms shows that a subscriber can make the server remember only a limited number of
// forms, and none that changed nothing.
func TestRememberedForms(t *testing.T) {
	w := newWorld(t)
	b := w.browser()
	page := b.account()
	count := func() (n int) {
		for _, entry := range w.entries() {
			if strings.Contains(entry, " ended:") {
				n++
			}
		}
		return n
	}

	before := count()
	if got := b.onPage(page, "/account/codes"); got.status != http.StatusOK {
		t.Errorf("codes without a second factor: %d %s, want the account page", got.status, got.body)
	}
	if n := count(); n != before {
		t.Errorf("after a form that did nothing, %d forms are remembered, want %d", n, before)
	}

	var last reply
	for range 61 {
		last = b.onPage(page, "/account/passkeys", "credential", "{}", "name", "x")
	}
	if last.status != http.StatusTooManyRequests {
		t.Errorf("the 61st form in a row: %d %s, want 429", last.status, last.body)
	}
}
