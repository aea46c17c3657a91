package oidc_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

// A moody store fails all changes of existing entries while down is set.
type moody struct {
	session.Store
	down bool
}

func (m *moody) CompareAndSwap(ctx context.Context, key session.Key, old, new []byte, ttl time.Duration) error {
	if m.down {
		return problem.New(problem.Unavailable, "unavailable", "the store is down")
	}
	return m.Store.CompareAndSwap(ctx, key, old, new, ttl)
}

// TestDeviceAnsweredAgain shows that a person can answer again if the store failed the first time.
func TestDeviceAnsweredAgain(t *testing.T) {
	w := newWorld(t)
	store := &moody{Store: w.idp.Sessions}
	w.idp.Sessions = store

	for answer, want := range map[string]string{"allow": "", "deny": "access_denied"} {
		d, b := w.device(w.tv()), w.browser()
		page := b.confirmation(d)
		store.down = true
		if got := b.consent(page, answer); got.status != http.StatusServiceUnavailable {
			t.Errorf("%s while the store is down: %d %s, want 503", answer, got.status, got.body)
		}

		store.down = false
		if got := b.consent(page, answer); got.status != http.StatusOK || !strings.Contains(got.body, `id="device-`) {
			t.Errorf("%s again: %d %s, want the last page", answer, got.status, got.body)
		}
		d.wants("after "+answer, want)
		if got := b.consent(page, "allow"); got.status != http.StatusBadRequest {
			t.Errorf("a third answer: %d, want 400", got.status)
		}
	}
}

// TestDeviceConfirmation shows that a confirmation page works only for the browser and the login in
// which the code was entered.
func TestDeviceConfirmation(t *testing.T) {
	w := newWorld(t)
	w.subscriber("bob@example.com")
	c := w.tv()
	d := w.device(c)

	b := w.browser()
	page := b.confirmation(d)

	// Another browser cannot submit the page, even if it is signed in and has its own confirmation
	// page.
	other := w.browser()
	other.confirmation(w.device(c))
	if got := other.consent(page, "allow"); got.status != http.StatusForbidden {
		t.Errorf("the page of another browser: %d, want 403", got.status)
	}

	form := url.Values{"answer": {"allow"}}
	for _, m := range hiddenField.FindAllStringSubmatch(page.body, -1) {
		form.Set(m[1], m[2])
	}

	// Other sites cannot submit the page.
	for path, form := range map[string]url.Values{"/consent": form,
		"/device": {"token": {b.pageToken("/device")}, "user_code": {d.user}}} {
		for header, value := range map[string]string{"Sec-Fetch-Site": "cross-site",
			"Origin": "https://evil.example"} {
			req, err := http.NewRequest(http.MethodPost, w.url+path, strings.NewReader(form.Encode()))
			must(t, err)
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			req.Header.Set(header, value)
			if got := b.do(req); got.status != http.StatusForbidden {
				t.Errorf("%s with %s %s: %d, want 403", path, header, value, got.status)
			}
		}
	}

	// A new login in the same browser makes the page invalid.
	if got := b.get("/accounts?id=" + form.Get("id")); got.status != http.StatusOK ||
		!strings.Contains(got.body, `href="/login?id=`+form.Get("id")) {
		t.Errorf("switching to another account: %d %s, want the account chooser", got.status, got.body)
	}

	b.logIn(b.get("/login?id="+form.Get("id")), "bob@example.com", secret)
	if got := b.consent(page, "allow"); got.status != http.StatusBadRequest {
		t.Errorf("ada's page answered by bob's login: %d, want 400", got.status)
	}
	if got := b.consent(page, "maybe"); got.status != http.StatusBadRequest {
		t.Errorf("a second answer: %d, want 400", got.status)
	}

	d.wants("after refused answers", "authorization_pending")
	if got := b.consent(b.get("/consent?id="+form.Get("id")), "allow"); got.status != http.StatusOK {
		t.Fatalf("bob's page: %d %s, want 200", got.status, got.body)
	}
	if id := idClaims(t, d.wants("for bob's answer", "")); id["sub"] == w.ada.ID {
		t.Error("bob's device got ada's tokens")
	}
}

// TestDeviceMeanwhile shows that a device gets no tokens if its subscriber, its client or its codes
// are removed during the flow.
func TestDeviceMeanwhile(t *testing.T) {
	tests := []struct {
		name string
		end  func(w *world, d device)
		// answered and polled are the errors that the device gets. For answered, end runs while the
		// confirmation page is open. For polled, it runs after the page was submitted.
		answered, polled string
	}{
		{"the subscriber is disabled", func(w *world, _ device) {
			_, err := w.fabric.Subscribers.Update(t.Context(), w.project.ID, w.ada.ID, fabricChange(true))
			must(t, err)
		}, "authorization_pending", "invalid_grant"},
		{"the client is deleted", func(w *world, d device) {
			must(t, w.idp.Clients.Delete(t.Context(), d.c.ID))
		}, "invalid_client", "invalid_client"},
		{"the client loses the grant", func(w *world, d device) {
			d.c.Grants = []string{idp.GrantRefresh}
			must(t, w.rewrite(d.c))
		}, "unauthorized_client", "unauthorized_client"},
		{"the session store is emptied", func(w *world, _ device) { w.empty() }, "invalid_grant", "invalid_grant"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			c := w.tv()
			before, after := w.device(c), w.device(c)
			b := w.browser()

			b.consent(b.confirmation(after), "allow")
			page := b.confirmation(before)

			tt.end(w, before)
			w.pass(time.Second)
			if got := b.consent(page, "allow"); got.status != http.StatusBadRequest {
				t.Errorf("answering the confirmation page: %d, want 400", got.status)
			}
			if got := before.poll().json(t)["error"]; got != tt.answered {
				t.Errorf("a device whose page was open gets %v, want %s", got, tt.answered)
			}
			if got := after.poll().json(t)["error"]; got != tt.polled {
				t.Errorf("a confirmed device gets %v, want %s", got, tt.polled)
			}
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
	d := w.device(c)
	b := w.browser()
	b.consent(b.confirmation(d), "allow")
	d.wants("by a third-party app", "")
	if agreed, err := w.idp.Consents.Covers(t.Context(), c, w.ada.ID,
		[]string{"openid", "email", "offline_access"}); !agreed || err != nil {
		t.Errorf("Covers = %v, %v, want the scopes that the device requested", agreed, err)
	}
}
