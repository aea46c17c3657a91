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

// TestAccountOfAnother shows that when the account page asks for a new sign-in, and the person signs
// in to another account, the page shows that account.
func TestAccountOfAnother(t *testing.T) {
	w := newWorld(t)
	grace := w.subscriber("grace@example.com")
	b := w.newBrowser()
	got := b.logIn(b.onPage(b.account(), "/account/sign-in"), grace.Email, secret)
	wantStatus(t, "signing in to another account", got, http.StatusOK)
	wantText(t, "signing in to another account", got, `id="account-page"`, grace.Email)

	id := hiddenID.FindStringSubmatch(b.onPage(got, "/account/sign-in").body)[1]
	got = b.choose(b.get("/accounts?id="+id), email)
	wantStatus(t, "choosing another account", got, http.StatusOK)
	wantText(t, "choosing another account", got, `id="account-page"`, email)
}

// TestUnsentFormOfAnother shows that the next person who signs in to a browser cannot send a form that
// another subscriber left unsent in it. The person would not know what the form changes.
func TestUnsentFormOfAnother(t *testing.T) {
	w := newWorld(t)
	grace := w.subscriber("grace@example.com")
	b := w.newBrowser()
	const path = "/account/email"
	typed := with(formOf(t, b.account(), path), "email", "eve@example.com")
	w.endLogins()
	left := formOf(t, b.fromPage(path, typed), path)

	b.logInAs(grace.Email)
	left.Set("project", w.project.ID)
	got := b.fromPage(path, left)
	wantStatus(t, "a form of ada, sent by grace", got, http.StatusForbidden)
	wantNoText(t, "a form of ada, sent by grace", got, "eve@example.com", "Send the form now?")

	forged := b.fromPage(path, with(typed, "token", "AAAA.AAAA.AAAA"))
	wantNoText(t, "a form with a made-up token", forged, "Send the form now?")
}

// TestInvitationInAnothersBrowser shows that the page after an invitation names nobody if the invited
// person must still sign in, even if another person is signed in to the browser.
func TestInvitationInAnothersBrowser(t *testing.T) {
	w := newWorld(t)
	b := w.newBrowser()
	b.account()
	link := w.invite("grace@example.com")
	_, err := w.fabric.Projects.Update(t.Context(), w.project.ID, fabric.ProjectChange{RequireFactor: new(true)})
	must(t, err)

	form := formOf(t, b.get(link), "/invite")
	form.Set("password", "granite-otter-nine")
	got := b.post("/invite", form)
	wantText(t, "grace's invitation in ada's browser", got, `id="notice-account"`)
	wantNoText(t, "grace's invitation in ada's browser", got, w.ada.Title(), email)
}

// TestRememberedForms shows that the server limits how many forms of a subscriber it remembers in a
// row. It does not remember forms that changed nothing.
func TestRememberedForms(t *testing.T) {
	w := newWorld(t)
	b := w.newBrowser()
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
	wantStatus(t, "codes without a second factor", b.onPage(page, "/account/codes"), http.StatusOK)
	if n := count(); n != before {
		t.Errorf("after a form that did nothing, %d forms are remembered, want %d", n, before)
	}

	var last reply
	for range 61 {
		last = b.onPage(page, "/account/passkeys", "credential", "{}", "name", "x")
	}
	wantStatus(t, "the 61st form in a row", last, http.StatusTooManyRequests)
}
