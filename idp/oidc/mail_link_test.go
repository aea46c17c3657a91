package oidc_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/mail"
	pages "github.com/selvage/selvage/internal/page"
)

// wantLetters checks how many letters of a kind were queued.
func (w *world) wantLetters(when string, kind mail.Kind, want int) {
	w.t.Helper()
	letters, err := w.rows.ListLetters(w.t.Context(), "", pages.Query{Size: 50})
	must(w.t, err)
	got := 0
	for _, letter := range letters.Items {
		if letter.Kind == kind {
			got++
		}
	}
	if got != want {
		w.t.Errorf("%s: %d letters of the kind %s, want %d", when, got, kind, want)
	}
}

// TestForgotNamesAddress shows that the page for a forgotten password names the address that was typed,
// and still reads well if the address is too long or empty.
func TestForgotNamesAddress(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	b := w.newBrowser()
	page := b.authorize(request(c))
	const named = "uses the address"
	wantText(t, "an address", b.form(page, "/forgot", "username", email), named+" "+email)
	for _, typed := range []string{strings.Repeat("a", 400) + "@example.com", " "} {
		got := b.form(page, "/forgot", "username", typed)
		wantText(t, "the address "+typed, got, "If an account uses that address")
		wantNoText(t, "the address "+typed, got, named)
	}
}

// TestLinkRequestedTwice shows that a request for a link leads to only one email, even if the browser
// submits the form twice. A form that was refused can be sent again, and so can an old form.
func TestLinkRequestedTwice(t *testing.T) {
	w := newWorld(t)
	_, err := w.fabric.Projects.Update(t.Context(), w.project.ID,
		fabric.ProjectChange{Registration: new(fabric.RegistrationOpen)})
	must(t, err)
	c, _ := w.client(nil)
	b := w.newBrowser()
	page := b.authorize(request(c))

	const sent = `id="mail-sent"`
	for _, tt := range []struct {
		path  string
		pairs []string
		kind  mail.Kind
	}{
		{"/forgot", []string{"username", email}, mail.Reset},
		{"/register", []string{"username", "new@example.com", "password", secret}, mail.Registration},
	} {
		first, second := b.form(page, tt.path, tt.pairs...), b.form(page, tt.path, tt.pairs...)
		wantText(t, tt.path, first, sent)
		wantText(t, tt.path+" sent twice", second, sent)
		w.pass(4 * time.Second) // the response is no longer in memory
		wantText(t, tt.path+" sent again", b.form(page, tt.path, tt.pairs...), sent)
		w.wantLetters(tt.path+" sent twice", tt.kind, 1)

		w.pass(time.Minute)
		wantText(t, tt.path+" sent later", b.form(page, tt.path, tt.pairs...), sent)
		w.wantLetters(tt.path+" sent later", tt.kind, 2)
	}

	refused := []string{"username", "other@example.com", "password", "short"}
	for range 2 {
		got := b.form(page, "/register", refused...)
		wantStatus(t, "a form with a weak password", got, http.StatusUnprocessableEntity)
	}
}
