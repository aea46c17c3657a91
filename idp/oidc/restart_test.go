package oidc_test

import (
	"net/http"
	"net/url"
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
	b, other := w.newBrowser(), w.newBrowser()

	page := b.authorize(request(c))
	wantNoText(t, "a first login page", page, "login-again")

	id := hiddenID.FindStringSubmatch(page.body)[1]
	w.empty()
	// If a request expires immediately, starting over could lead to a loop.
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
	b.wantNoFlow("after the login has started again")

	// The new request is answered only once.
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

// TestBeginAgainInTwoTabs shows that each tab starts its own request over if both requests have expired.
func TestBeginAgainInTwoTabs(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	b := w.newBrowser()
	pages := map[string]reply{}
	for _, tab := range []string{"first", "second"} {
		pages[tab] = b.authorize(request(c, "state", tab, "prompt", "login"))
	}
	w.empty()
	w.pass(time.Minute)
	for tab, page := range pages {
		again := b.logIn(page, email, secret)
		wantText(t, "the "+tab+" tab", again, `id="login-again"`)
		done := b.logIn(again, email, secret)
		wantCode(t, "the "+tab+" tab", done)
		wantParam(t, "the "+tab+" tab", done, "state", tab)
	}
}

// TestTwoFirstTabs shows that both tabs finish their requests if a browser without cookies sends both
// requests at the same time, as it does when it opens its tabs again. The cookies of the second response
// then replace those of the first. Another browser cannot continue either request.
func TestTwoFirstTabs(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	b, other := w.newBrowser(), w.newBrowser()
	home, err := url.Parse(w.url)
	must(t, err)

	tabs := []string{"first", "second"}
	locations := map[string]string{}
	for _, tab := range tabs {
		fresh := w.newBrowser()
		fresh.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		begun := fresh.authorize(request(c, "state", tab, "prompt", "login"))
		wantStatus(t, "the "+tab+" request", begun, http.StatusSeeOther)
		locations[tab] = begun.header.Get("Location")
		b.http.Jar.SetCookies(home, fresh.http.Jar.Cookies(home))
	}

	for _, tab := range tabs {
		wantStatus(t, "the "+tab+" page in another browser", other.get(locations[tab]), http.StatusBadRequest)
		done := b.logIn(b.get(locations[tab]), email, secret)
		wantCode(t, "the "+tab+" tab", done)
		wantParam(t, "the "+tab+" tab", done, "state", tab)
	}
	b.wantNoFlow("after both requests")
}

// wantNoFlow checks that the browser has no mark for a single request.
func (b *browser) wantNoFlow(when string) {
	b.w.t.Helper()
	home, err := url.Parse(b.w.url)
	must(b.w.t, err)
	for _, cookie := range b.http.Jar.Cookies(home) {
		if strings.HasPrefix(cookie.Name, "selvage-flow-") {
			b.w.t.Errorf("%s, the browser still has the cookie %s", when, cookie.Name)
		}
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
