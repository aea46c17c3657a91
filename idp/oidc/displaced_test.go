package oidc_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/selvage/selvage/idp"
)

// lives checks that the access tokens in sets are accepted if want is true, and rejected otherwise.
func (w *world) lives(when string, want bool, sets ...map[string]any) {
	w.t.Helper()
	status := http.StatusUnauthorized
	if want {
		status = http.StatusOK
	}
	for i, set := range sets {
		if got := w.userinfo(text(set["access_token"])); got.status != status {
			w.t.Errorf("%s: access token %d of %d: status %d, want %d", when, i+1, len(sets), got.status, status)
		}
	}
}

// TestDisplacedLogins shows that the tokens of a login stay valid if another login of the same
// subscriber replaces it in a browser. They end when the subscriber signs out in that browser.
func TestDisplacedLogins(t *testing.T) {
	for name, signOut := range map[string]func(b *browser, hint string){
		"with an ID token": func(b *browser, hint string) { b.endSession("id_token_hint", hint) },
		"on the page":      func(b *browser, _ string) { b.signOut() },
	} {
		w := newWorld(t)
		first, second := w.newRP(nil), w.newRP(nil)
		b, elsewhere := w.newBrowser(), w.newBrowser()
		c, _ := w.client(withLogout)
		other := w.redeem(c, elsewhere.code(c)).json(t)

		// Sign in several times in the same browser, with tokens for three clients.
		first.signIn(b, email)
		sets := []map[string]any{w.redeem(c, b.code(c)).json(t)}
		for range 2 {
			got := b.logIn(b.authorize(request(c, "prompt", "login")), email, secret)
			sets = append(sets, w.redeem(c, got.param("code")).json(t))
		}
		second.signIn(b, email)

		w.lives(name+", before", true, sets...)
		w.empty()
		signOut(b, text(sets[2]["id_token"]))
		w.lives(name+", after", false, sets...)
		w.lives(name+", of another browser", true, other)

		for i, client := range []*rp{first, second} {
			if received := client.logouts(); len(received) != 1 {
				t.Errorf("%s: client %d receives %d logout tokens, want 1", name, i, len(received))
			}
		}
	}
}

// TestOneLoginTooMany shows that the oldest login of a browser ends when a new one exceeds
// [idp.MaxLogins].
func TestOneLoginTooMany(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	b := w.newBrowser()

	var sets []map[string]any
	for i := range idp.MaxLogins + 1 {
		sub := w.subscriber(fmt.Sprintf("%d@example.com", i))
		w.lives("before the last login", true, sets...)
		got := b.logIn(b.authorize(request(c, "prompt", "login")), sub.Email, secret)
		sets = append(sets, w.redeem(c, got.param("code")).json(t))
	}
	w.lives("the oldest login", false, sets[0])
	w.lives("the other logins", true, sets[1:]...)
}

// TestHintOfAnotherBrowser shows that an ID token is not a credential. In a browser other than that
// of its login, it ends nothing. If a person is signed in to the browser, only this person's login can
// end, and only after the person has confirmed it.
func TestHintOfAnotherBrowser(t *testing.T) {
	w := newWorld(t)
	w.subscriber(bobs)
	c, _ := w.client(withLogout)
	b := w.newBrowser()
	ada := w.redeem(c, b.code(c)).json(t)
	logOut := func(b *browser) reply {
		return b.endSession("id_token_hint", text(ada["id_token"]), "post_logout_redirect_uri", goodbye)
	}

	wantRedirect(t, "a logout without a login", logOut(w.newBrowser()), goodbye)
	w.lives("after a logout in another browser", true, ada)

	for _, who := range []string{email, bobs} {
		other := w.newBrowser()
		theirs := w.redeem(c, other.logIn(other.authorize(request(c)), who, secret).param("code")).json(t)
		page := logOut(other)
		wantPage(t, "a logout in a browser of "+who, page, "logout-confirm")
		w.lives("before the confirmation in a browser of "+who, true, ada, theirs)
		wantRedirect(t, "after the confirmation in a browser of "+who, other.submit(page), goodbye)
		w.lives("the login of that browser", false, theirs)
		w.lives("after the confirmation in a browser of "+who, true, ada)
	}

	w.pass(13 * time.Hour) // the cookie has expired, but the app still has tokens from the login
	refreshed := w.refresh(c, text(ada["refresh_token"])).json(t)
	wantRedirect(t, "a logout in its own browser, without the cookie", logOut(b), goodbye)
	w.lives("after its own logout", false, refreshed)
}

// TestConfirmedLogoutEndsAll shows that a confirmed logout ends all logins made in the browser in
// the app's project, including those whose cookie has expired.
func TestConfirmedLogoutEndsAll(t *testing.T) {
	w := newWorld(t)
	w.subscriber(bobs)
	c, _ := w.client(withLogout)
	b := w.newBrowser()

	ada := w.redeem(c, b.code(c)).json(t)
	w.pass(13 * time.Hour)
	ada = w.refresh(c, text(ada["refresh_token"])).json(t)
	bob := w.redeem(c, b.logIn(b.authorize(request(c)), bobs, secret).param("code")).json(t)

	page := b.endSession("client_id", c.ID)
	wantText(t, "confirming", b.submit(page), `id="logged-out"`)
	w.lives("after the confirmation", false, ada, bob)
}
