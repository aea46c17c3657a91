package oidc_test

import (
	"context"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/factor/factortest"
	"github.com/selvage/selvage/internal/limit"
)

// passkey adds a passkey for a subscriber, and returns the device that holds it.
func (w *world) passkey(subscriberID string) *factortest.Authenticator {
	w.t.Helper()
	ctx, o := context.Background(), idp.OwnerOf(subscriberID)
	d := &factortest.Authenticator{Origin: strings.Replace(w.url, "127.0.0.1", "localhost", 1)}
	options, err := w.idp.Factors.BeginPasskey(ctx, o, "test", email, "Ada")
	must(w.t, err)
	_, err = w.idp.Factors.CreatePasskey(ctx, o, false, "test", "Laptop", d.Create(options))
	must(w.t, err)
	return d
}

var optionsOfPage = regexp.MustCompile(`data-options="([^"]*)"`)

// options returns the passkey options that a page passes to an authenticator.
func (r reply) options(t testing.TB) []byte {
	t.Helper()
	m := optionsOfPage.FindStringSubmatch(r.body)
	if m == nil {
		t.Fatalf("the page asks for no passkey: %d %s", r.status, r.body)
	}
	return []byte(html.UnescapeString(m[1]))
}

// TestLoginWithPasskey shows that a passkey can be used by itself or as a second factor.
func TestLoginWithPasskey(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	d := w.passkey(w.ada.ID)
	b := w.browser()
	page := b.authorize(request(c))
	credential := string(d.Get(page.options(t)))
	acr, amr := w.proven(c, b.form(page, "/login/passkey", "credential", credential))
	wantProven(t, "only a passkey", acr, amr, "hwk", "user", "pop", "mfa")

	other := w.browser()
	page = other.logIn(other.authorize(request(c)), email, secret)
	credential = string(d.Get(page.options(t)))
	acr, amr = w.proven(c, other.form(page, "/login/factor", "with", "passkey", "credential", credential))
	wantProven(t, "password and passkey", acr, amr, "pwd", "hwk", "user", "pop", "mfa")
}

// TestPasskeyRefusedAtLogin shows that a login refuses a passkey with the wrong challenge, origin,
// project or subscriber, and the passkey of a disabled subscriber.
func TestPasskeyRefusedAtLogin(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	grace := w.subscriber("grace@example.com")
	mine, hers := w.passkey(w.ada.ID), w.passkey(grace.ID)
	elsewhere, err := w.fabric.Projects.Create(t.Context(), "Other")
	must(t, err)
	foreign, _ := w.client(func(c *idp.Client) { c.ProjectID = elsewhere.ID })

	b, other := w.browser(), w.browser()
	page, strange := b.authorize(request(c)), other.authorize(request(c))
	credential := func(d *factortest.Authenticator, page reply) []string {
		return []string{"credential", string(d.Get(page.options(t)))}
	}

	lying := *mine
	lying.Origin = "http://localhost.evil.example"
	for name, got := range map[string]reply{
		"the challenge of another flow": b.form(page, "/login/passkey", credential(mine, strange)...),
		"a different origin":            other.form(strange, "/login/passkey", credential(&lying, strange)...),
		"nothing":                       b.form(b.authorize(request(c)), "/login/passkey"),
	} {
		if got.status != http.StatusUnprocessableEntity ||
			!strings.Contains(got.body, `id="passkey-error" role="alert">`) {
			t.Errorf("%s: %d %s, want 422 with an error", name, got.status, got.body)
		}
	}

	// A passkey is only valid in its project, and only for its own subscriber.
	page = b.authorize(request(foreign))
	if got := b.form(page, "/login/passkey",
		credential(mine, page)...); got.status != http.StatusUnprocessableEntity ||
		!strings.Contains(got.body, "unknown here") {
		t.Errorf("a passkey of another project: %d %s, want 422", got.status, got.body)
	}
	page = b.logIn(b.authorize(request(c)), email, secret)
	if got := b.form(page, "/login/factor",
		append(credential(hers, page), "with", "passkey")...); got.status != http.StatusUnprocessableEntity {
		t.Errorf("another subscriber's passkey as the second factor: %d %v, want 422",
			got.status, got.parameters())
	}

	disabled := true
	_, err = w.fabric.Subscribers.Update(t.Context(), w.project.ID, grace.ID,
		fabric.SubscriberInput{Disabled: &disabled})
	must(t, err)
	page = other.authorize(request(c))
	if got := other.form(page, "/login/passkey",
		credential(hers, page)...); got.status != http.StatusUnprocessableEntity ||
		!strings.Contains(got.body, "unknown here") {
		t.Errorf("a disabled subscriber's passkey: %d %s, want 422", got.status, got.body)
	}
}

// TestPasskeysAreCounted shows that refused passkeys count against the login limits, like wrong
// passwords.
func TestPasskeysAreCounted(t *testing.T) {
	w := newWorld(t)
	w.limits.Set(limit.Rates{limit.LoginPerNetwork: {Burst: 2, Every: time.Hour}})
	c, _ := w.client(nil)

	b := w.browser()
	page := b.authorize(request(c))
	for i, want := range []int{http.StatusUnprocessableEntity, http.StatusUnprocessableEntity,
		http.StatusTooManyRequests} {
		if got := b.form(page, "/login/passkey", "credential", "{}"); got.status != want {
			t.Errorf("attempt %d: %d %s, want %d", i+1, got.status, got.parameters(), want)
		}
	}
}

// TestOnlyPasskeyStays shows that the last passkey cannot be removed if its subscriber has no
// password.
func TestOnlyPasskeyStays(t *testing.T) {
	w := newWorld(t)
	address := "grace@example.com"
	grace, err := w.fabric.Subscribers.Create(t.Context(), w.project.ID, fabric.SubscriberInput{Email: &address})
	must(t, err)

	d := w.passkey(grace.ID)
	b := w.browser()
	page := b.get("/account?project=" + w.project.ID)
	page = b.form(page, "/login/passkey", "credential", string(d.Get(page.options(t))))
	if !strings.Contains(page.body, `id="account-page"`) {
		t.Fatalf("a login without a password: %d %s, want the account page", page.status, page.body)
	}

	all, err := w.idp.Factors.List(t.Context(), idp.OwnerOf(grace.ID))
	must(t, err)
	if got := b.onPage(page, "/account/factors/remove", "factor",
		all[0].ID); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, "the only way") {
		t.Errorf("removing the only passkey: %d %s, want 422", got.status, got.body)
	}
	if left, err := w.idp.Factors.List(t.Context(), idp.OwnerOf(grace.ID)); err != nil || len(left) != 1 {
		t.Errorf("remaining factors: %v, %v, want one", left, err)
	}
}
