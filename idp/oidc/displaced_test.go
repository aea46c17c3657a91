package oidc_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
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
			w.t.Errorf("%s: access token %d of %d: %d, want %d", when, i+1, len(sets), got.status, status)
		}
	}
}

// TestDisplacedLogins shows that the tokens of a login stay valid if another login of the same
// subscriber replaces it in a browser. They end when the subscriber signs out in that browser.
func TestDisplacedLogins(t *testing.T) {
	for name, out := range map[string]func(b *browser, newest string){
		"with an ID token": func(b *browser, newest string) {
			b.get("/oauth/logout?" + url.Values{"id_token_hint": {newest}}.Encode())
		},
		"on the page": func(b *browser, _ string) { b.submit(b.get("/logout")) },
	} {

		w := newWorld(t)
		first, second := w.rp(nil), w.rp(nil)
		b, elsewhere := w.browser(), w.browser()
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
		out(b, text(sets[2]["id_token"]))
		w.lives(name+", after", false, sets...)
		w.lives(name+", of another browser", true, other)

		// Each client is notified once.
		for i, r := range []*rp{first, second} {
			if received := r.logouts(); len(received) != 1 {
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
	b := w.browser()

	var sets []map[string]any
	for i := range idp.MaxLogins + 1 {
		who := fmt.Sprintf("%d@example.com", i)
		w.subscriber(who)
		w.lives("before the last login", true, sets...)
		sets = append(sets, w.redeem(c, b.logIn(
			b.authorize(request(c, "prompt", "login")), who, secret).param("code")).json(t))
	}
	w.lives("the oldest login", false, sets[0])
	w.lives("the other logins", true, sets[1:]...)
}

// TestHintOfAnotherBrowser shows that an ID token is not a credential. In a browser other than the
// browser of its login, it ends nothing. A signed-in person must confirm before that person's own
// login ends.
func TestHintOfAnotherBrowser(t *testing.T) {
	w := newWorld(t)
	w.subscriber(bobs)
	c, _ := w.client(withLogout)
	b := w.browser()
	ada := w.redeem(c, b.code(c)).json(t)
	out := "/oauth/logout?" + url.Values{"id_token_hint": {text(ada["id_token"])},
		"post_logout_redirect_uri": {goodbye}}.Encode()

	if got := w.browser().get(out); got.location == nil || got.location.String() != goodbye {
		t.Errorf("without a login: %d %v, want a redirect to the client", got.status, got.location)
	}
	w.lives("after a logout in another browser", true, ada)

	for _, who := range []string{email, bobs} {
		other := w.browser()
		theirs := w.redeem(c, other.logIn(other.authorize(request(c)), who, secret).param("code")).json(t)
		page := other.get(out)
		if page.location != nil || !strings.Contains(page.body, `id="logout-confirm"`) {
			t.Errorf("in a browser of %s: %d %v, want the confirmation page", who, page.status, page.location)
		}
		w.lives("before the confirmation in a browser of "+who, true, ada, theirs)
		if got := other.submit(page); got.location == nil || got.location.String() != goodbye {
			t.Errorf("after the confirmation in a browser of %s: %d %v, want a redirect to the client",
				who, got.status, got.location)
		}
		w.lives("the login of that browser", false, theirs)
		w.lives("after the confirmation in a browser of "+who, true, ada)
	}

	w.pass(13 * time.Hour) // the cookie has expired, but the app still has tokens from the login
	ada = w.refresh(c, text(ada["refresh_token"])).json(t)
	if got := b.get(out); got.location == nil {
		t.Errorf("in its own browser, without the cookie: %d %s, want a redirect", got.status, got.body)
	}
	w.lives("after its own logout", false, ada)
}

// TestConfirmedLogoutEndsAll shows that a confirmed logout ends all logins made in the browser in
// the app's project, including those that another login has replaced.
func TestConfirmedLogoutEndsAll(t *testing.T) {
	w := newWorld(t)
	w.subscriber(bobs)
	c, _ := w.client(withLogout)
	b := w.browser()

	ada := w.redeem(c, b.code(c)).json(t)
	w.pass(13 * time.Hour)
	ada = w.refresh(c, text(ada["refresh_token"])).json(t)
	bob := w.redeem(c, b.logIn(b.authorize(request(c)), bobs, secret).param("code")).json(t)

	page := b.get("/oauth/logout?" + url.Values{"client_id": {c.ID}}.Encode())
	if got := b.submit(page); !strings.Contains(got.body, `id="logged-out"`) {
		t.Errorf("confirming: %d %s, want the last page", got.status, got.body)
	}
	w.lives("after the confirmation", false, ada, bob)
}
