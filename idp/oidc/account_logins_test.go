package oidc_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/idp"
)

// browserOn returns a new browser that sends this User-Agent.
func (w *world) browserOn(userAgent string) *browser {
	b := w.newBrowser()
	b.http.Transport = agentSetter{RoundTripper: b.http.Transport, userAgent: userAgent}
	return b
}

// An agentSetter adds a User-Agent header to requests.
type agentSetter struct {
	http.RoundTripper
	userAgent string
}

func (s agentSetter) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("User-Agent", s.userAgent)
	return s.RoundTripper.RoundTrip(r)
}

const (
	firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
	iphone  = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 " +
		"(KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1"
)

var sessionField = regexp.MustCompile(`(?s)<span class="name">([^<]*)</span>(.*?)name="session" value="([^"]+)"`)

// sessionsOf returns the sessions that an account page lists, as IDs by device name, and the device
// name of the current browser.
func sessionsOf(page reply) (ids map[string]string, here string) {
	ids = make(map[string]string)
	for _, m := range sessionField.FindAllStringSubmatch(page.body, -1) {
		device, details, id := m[1], m[2], m[3]
		ids[device] = id
		if strings.Contains(details, `id="session-here"`) {
			here = device
		}
	}
	return ids, here
}

// TestAccountSessions shows that subscribers see where they are signed in, and can end one session
// or all of them.
func TestAccountSessions(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	desk, phone, stranger := w.browserOn(firefox), w.browserOn(iphone), w.newBrowser()
	w.subscriber(bobs)

	// All three browsers sign in. The desk later signs in again in the same browser.
	bob := w.redeem(c, stranger.logIn(stranger.authorize(request(c)), bobs, secret).param("code")).json(t)
	atDesk := w.redeem(c, desk.code(c)).json(t)
	onPhone := w.redeem(c, phone.code(c)).json(t)
	w.pass(3 * time.Hour)
	atDesk = w.refresh(c, text(atDesk["refresh_token"])).json(t)
	onPhone = w.refresh(c, text(onPhone["refresh_token"])).json(t)
	newer := desk.logIn(desk.authorize(request(c, "prompt", "login")), email, secret)
	again := w.redeem(c, newer.param("code")).json(t)
	bob = w.refresh(c, text(bob["refresh_token"])).json(t)

	page := desk.account()
	ids, here := sessionsOf(page)
	if len(ids) != 2 || ids["Safari on iPhone"] == "" {
		t.Fatalf("the sessions are %v, want Firefox and Safari", ids)
	}
	if here != "Firefox on Linux" {
		t.Fatalf("the current browser is %q, want Firefox on Linux", here)
	}
	wantText(t, "the account page", page, "signed in 3 hours ago", "127.0.0.1")
	form := with(formOf(t, page, "/account/sessions/end"), "session", "unknown")
	unknown := desk.post("/account/sessions/end", form)
	wantText(t, "ending an unknown session", unknown, `id="account-notice"`)

	// Sessions of another subscriber cannot be ended.
	theirs, _ := sessionsOf(stranger.get("/account"))
	for _, id := range theirs {
		desk.post("/account/sessions/end", with(form, "session", id))
	}
	w.lives("before any session ends", true, atDesk, again, onPhone, bob)

	// Ending a session in another browser leaves this browser signed in.
	desk.post("/account/sessions/end", with(form, "session", ids["Safari on iPhone"]))
	w.lives("after ending the phone's session, the phone's", false, onPhone)
	w.lives("after ending the phone's session, the others", true, atDesk, again, bob)
	wantSignedIn(t, "the phone after its session ended", phone, c, false)
	wantSignedIn(t, "the desk after the phone's session ended", desk, c, true)

	// Ending this browser's session also ends the older login that it replaced.
	last := desk.post("/account/sessions/end", with(form, "session", ids["Firefox on Linux"]))
	wantText(t, "ending this browser's session", last, `id="logged-out"`)
	w.lives("after ending the desk's session, its two logins", false, atDesk, again)

	atDesk = w.redeem(c, desk.code(c)).json(t)
	onPhone = w.redeem(c, phone.code(c)).json(t)
	form = formOf(t, phone.account(), "/account/sessions/end-all")
	last = phone.post("/account/sessions/end-all", form)
	wantText(t, "ending all sessions", last, `id="logged-out"`)
	w.lives("after ending all sessions, ada's", false, atDesk, onPhone)
	w.lives("after ending all of ada's sessions, bob's", true, bob)
	wantSignedIn(t, "the phone after all sessions ended", phone, c, false)
	wantSignedIn(t, "the desk after all sessions ended", desk, c, false)
	wantSignedIn(t, "bob after all of ada's sessions ended", stranger, c, true)
}

// TestAccountApps shows that subscribers see which apps have access, and can revoke it.
func TestAccountApps(t *testing.T) {
	w := newWorld(t)
	own, _ := w.client(func(n *idp.Client) { n.Name = "Own" })
	third, _ := w.client(func(n *idp.Client) { n.Name, n.FirstParty = "Third", false })
	b := w.newBrowser()
	page := b.account()
	wantText(t, "the page before any app has access", page, `id="apps-none"`)

	ours := w.redeem(own, b.code(own)).json(t)
	consent := b.authorize(request(third, "scope", "openid email"))
	theirs := w.redeem(third, b.consent(consent, "allow").param("code")).json(t)
	page = b.account()
	wantText(t, "the list of apps", page, ">Own<", ">Third<", "See your email address", `id="app-revoke-1"`)

	// Revoking one app's access does not affect the other app's tokens. The first app must ask
	// again.
	form := formOf(t, page, "/account/apps/revoke")
	got := b.post("/account/apps/revoke", with(form, "client", third.ID))
	wantText(t, "after access was revoked", got, `id="account-notice"`)
	wantNoText(t, "after access was revoked", got, ">Third<")
	w.lives("the revoked app's", false, theirs)
	w.lives("the other app's", true, ours)
	silent := b.authorize(request(third, "prompt", "none"))
	wantParam(t, "the app that asks again", silent, "error", "consent_required")

	// Revoking an unknown client's access is not an error.
	for _, client := range []string{third.ID, "nobody", ""} {
		got := b.post("/account/apps/revoke", with(form, "client", client))
		wantStatus(t, "revoking access of "+client, got, http.StatusOK)
	}

	b.post("/account/apps/revoke", with(form, "client", own.ID))
	w.lives("the revoked app's", false, ours)
}

// TestBrowserLimits shows that a browser's session ends 12 hours after its last visit. It also ends
// 7 days after its login, even if it is used often. The limits also apply if the session store
// loses the session in the meantime.
func TestBrowserLimits(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	b := w.newBrowser()
	b.code(c)

	// Visits within 12 hours keep the session alive.
	for range 3 {
		w.pass(11 * time.Hour)
		if !b.signedIn(c) {
			t.Fatal("a browser that visits every 11 hours is signed out")
		}
		w.empty()
	}

	// A longer absence ends the session.
	w.pass(12*time.Hour + time.Minute)
	wantSignedIn(t, "a browser that was away for 12 hours", b, c, false)

	// After seven days the session ends despite frequent visits.
	b.code(c)
	days := 0
	for ; days < 8 && b.signedIn(c); days++ {
		for range 3 {
			w.pass(8 * time.Hour)
			b.get("/account?" + url.Values{"project": {w.project.ID}}.Encode())
		}
	}
	if days != 7 {
		t.Errorf("a browser that visits every 8 hours is signed in for %d days, want 7", days)
	}
}
