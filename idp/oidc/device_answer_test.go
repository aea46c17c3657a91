package oidc_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

// A failingStore fails all changes of existing entries while down is set.
type failingStore struct {
	session.Store
	down bool
}

func (m *failingStore) CompareAndSwap(ctx context.Context, key session.Key, old, new []byte, ttl time.Duration) error {
	if m.down {
		return problem.New(problem.Unavailable, "unavailable", "the store is down")
	}
	return m.Store.CompareAndSwap(ctx, key, old, new, ttl)
}

// TestDeviceAnsweredAgain shows that a person can answer again if the store failed the first time.
func TestDeviceAnsweredAgain(t *testing.T) {
	w := newWorld(t)
	store := &failingStore{Store: w.idp.Sessions}
	w.idp.Sessions = store

	c := w.tv()
	for answer, wantPolled := range map[string]func(device){
		"allow": func(d device) { d.wantsTokens("after allowing") },
		"deny":  func(d device) { d.wantsError("after denying", "access_denied") },
	} {
		d, b := w.newDevice(c), w.newBrowser()
		page := b.confirmation(d)
		store.down = true
		failed := b.consent(page, answer)
		wantStatus(t, answer+" while the store is down", failed, http.StatusServiceUnavailable)

		store.down = false
		again := b.consent(page, answer)
		wantStatus(t, answer+" again", again, http.StatusOK)
		wantText(t, answer+" again", again, `id="device-`)
		wantPolled(d)
		w.pass(4 * time.Second) // a double click is answered once; see TestDoubleClick
		wantStatus(t, "a third answer", b.consent(page, "allow"), http.StatusBadRequest)
	}
}

// TestDeviceDefaults shows that the default maximum age and class of a client also apply to the logins
// with which people sign in a device.
func TestDeviceDefaults(t *testing.T) {
	w := newWorld(t)
	c := w.tv()
	c.DefaultMaxAge = new(int64(60))
	must(t, w.rewrite(c))
	b := w.newBrowser()
	b.confirmation(w.newDevice(c))
	wantText(t, "a recent login", b.enter(w.newDevice(c).userCode), `id="device-warning"`)
	w.pass(2 * time.Minute)
	page := b.enter(w.newDevice(c).userCode)
	wantText(t, "an old login", page, `id="login-submit"`)
	page = b.logIn(page, email, secret)
	wantText(t, "after a new login", b.consent(page, "allow"), `id="device-done"`)

	w.pass(50 * time.Second)
	page = b.enter(w.newDevice(c).userCode)
	wantText(t, "a login that is almost too old", page, `id="device-warning"`)
	w.pass(15 * time.Second)
	page = b.consent(page, "allow")
	wantText(t, "a login that is too old when the person answers", page, `id="login-submit"`)
	page = b.logIn(page, email, secret)
	wantText(t, "after another login", b.consent(page, "allow"), `id="device-done"`)

	c.DefaultACR = []string{"2"}
	must(t, w.rewrite(c))
	wantText(t, "a login with one factor", b.enter(w.newDevice(c).userCode), "Set up a second factor")
}

// TestDeviceConfirmation shows that a confirmation page works only for the browser and the login in
// which the code was entered.
func TestDeviceConfirmation(t *testing.T) {
	w := newWorld(t)
	w.subscriber("bob@example.com")
	c := w.tv()
	d := w.newDevice(c)

	b := w.newBrowser()
	page := b.confirmation(d)

	// Another browser cannot submit the page, even if it is signed in and has its own confirmation
	// page.
	other := w.newBrowser()
	other.confirmation(w.newDevice(c))
	wantStatus(t, "the page of another browser", other.consent(page, "allow"), http.StatusForbidden)

	// Other sites cannot submit the page.
	consent := page.hiddenFields()
	consent.Set("answer", "allow")
	entered := url.Values{"token": {b.pageToken("/device")}, "user_code": {d.userCode}}
	for path, form := range map[string]url.Values{"/consent": consent, "/device": entered} {
		for header, value := range map[string]string{
			"Sec-Fetch-Site": "cross-site",
			"Origin":         "https://evil.example",
		} {
			req, err := http.NewRequest(http.MethodPost, w.url+path, strings.NewReader(form.Encode()))
			must(t, err)
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			req.Header.Set(header, value)
			wantStatus(t, path+" with "+header+" "+value, b.do(req), http.StatusForbidden)
		}
	}

	// A new login in the same browser makes the page invalid.
	id := consent.Get("id")
	chooser := b.get("/accounts?id=" + id)
	wantStatus(t, "switching to another account", chooser, http.StatusOK)
	wantText(t, "switching to another account", chooser, `href="/login?id=`+id)
	b.logIn(b.get("/login?id="+id), "bob@example.com", secret)
	wantStatus(t, "ada's page answered by bob's login", b.consent(page, "allow"), http.StatusBadRequest)
	wantStatus(t, "a second answer", b.consent(page, "maybe"), http.StatusBadRequest)

	d.wantsError("after refused answers", "authorization_pending")
	wantStatus(t, "bob's page", b.consent(b.get("/consent?id="+id), "allow"), http.StatusOK)
	if claims := idClaims(t, d.wantsTokens("after bob's answer")); claims["sub"] == w.ada.ID {
		t.Error("bob's device got ada's tokens")
	}
}

// TestDeviceMeanwhile shows that a device gets no tokens if its subscriber, its client or its codes
// are removed during the flow.
func TestDeviceMeanwhile(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(w *world, d device)
		// wantOpen and wantConfirmed are the errors that devices get. For wantOpen, end runs while
		// the confirmation page is open. For wantConfirmed, it runs after the page was submitted.
		wantOpen, wantConfirmed string
		wantLogin               bool // whether the answer leads to the login page
	}{
		{
			name: "the subscriber is disabled",
			end: func(w *world, _ device) {
				disable := fabric.SubscriberInput{Disabled: new(true)}
				_, err := w.fabric.Subscribers.Update(t.Context(), w.project.ID, w.ada.ID, disable)
				must(t, err)
			},
			wantOpen:      "authorization_pending",
			wantConfirmed: "invalid_grant",
			wantLogin:     true,
		},
		{
			name:          "the client is deleted",
			end:           func(w *world, d device) { must(t, w.idp.Clients.Delete(t.Context(), d.c.ID)) },
			wantOpen:      "invalid_client",
			wantConfirmed: "invalid_client",
		},
		{
			name: "the client loses the grant",
			end: func(w *world, d device) {
				d.c.Grants = []string{idp.GrantRefresh}
				must(t, w.rewrite(d.c))
			},
			wantOpen:      "unauthorized_client",
			wantConfirmed: "unauthorized_client",
		},
		{
			name:          "the session store is emptied",
			end:           func(w *world, _ device) { w.empty() },
			wantOpen:      "invalid_grant",
			wantConfirmed: "invalid_grant",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			c := w.tv()
			open, confirmed := w.newDevice(c), w.newDevice(c)
			b := w.newBrowser()
			b.consent(b.confirmation(confirmed), "allow")
			page := b.confirmation(open)

			tt.end(w, open)
			w.pass(time.Second)
			answered := b.consent(page, "allow")
			if tt.wantLogin {
				wantText(t, "answering the page", answered, `id="login-submit"`)
			} else {
				wantStatus(t, "answering the page", answered, http.StatusBadRequest)
			}
			wantError(t, "a device whose page was open", open.poll(), tt.wantOpen)
			wantError(t, "a confirmed device", confirmed.poll(), tt.wantConfirmed)
		})
	}
}

// TestDeviceConsent shows that signing in a device of a third-party client records consent to its
// scopes.
func TestDeviceConsent(t *testing.T) {
	w := newWorld(t)
	c := w.tv()
	c.FirstParty = false
	must(t, w.rewrite(c))
	d := w.newDevice(c)
	b := w.newBrowser()
	b.consent(b.confirmation(d), "allow")
	d.wantsTokens("after consent to a third-party app")
	requested := []string{"openid", "email", "offline_access"}
	agreed, err := w.idp.Consents.Covers(t.Context(), c, w.ada.ID, requested)
	must(t, err)
	if !agreed {
		t.Errorf("the consent does not cover %q, which the device requested", requested)
	}
}
