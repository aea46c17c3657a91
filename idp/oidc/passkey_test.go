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
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/factor/factortest"
	"github.com/selvage/selvage/internal/limit"
	pages "github.com/selvage/selvage/internal/page"
)

// passkey adds a passkey for a subscriber, and returns the device that holds it.
func (w *world) passkey(subscriberID string) *factortest.Authenticator {
	w.t.Helper()
	ctx, owner := context.Background(), idp.OwnerOf(subscriberID)
	device := &factortest.Authenticator{Origin: strings.Replace(w.url, "127.0.0.1", "localhost", 1)}
	options, err := w.idp.Factors.BeginPasskey(ctx, owner, "test", email, "Ada")
	must(w.t, err)
	_, err = w.idp.Factors.CreatePasskey(ctx, owner, false, "test", "Laptop", device.Create(options))
	must(w.t, err)
	return device
}

// logInByPasskey submits the response of a passkey on the login page.
func (b *browser) logInByPasskey(page reply, credential string) reply {
	b.w.t.Helper()
	return b.form(page, "/login/passkey", "credential", credential)
}

// options returns the passkey options that a page passes to an authenticator.
func (r reply) options(t testing.TB) []byte {
	t.Helper()
	m := regexp.MustCompile(`data-options="([^"]*)"`).FindStringSubmatch(r.body)
	if m == nil {
		t.Fatalf("the page asks for no passkey: %d %s", r.status, r.body)
	}
	return []byte(html.UnescapeString(m[1]))
}

// TestLoginWithPasskey shows that a passkey can be used by itself or as a second factor.
func TestLoginWithPasskey(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	device := w.passkey(w.ada.ID)
	b := w.newBrowser()
	page := b.authorize(request(c))
	credential := string(device.Get(page.options(t)))
	acr, amr := w.proven(c, b.logInByPasskey(page, credential))
	wantProven(t, "only a passkey", acr, amr, "hwk", "user", "pop", "mfa")

	other := w.newBrowser()
	page = other.logIn(other.authorize(request(c)), email, secret)
	credential = string(device.Get(page.options(t)))
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

	b, other := w.newBrowser(), w.newBrowser()
	page, strange := b.authorize(request(c)), other.authorize(request(c))
	credential := func(device *factortest.Authenticator, page reply) string {
		return string(device.Get(page.options(t)))
	}

	lying := *mine
	lying.Origin = "http://localhost.evil.example"
	for name, got := range map[string]reply{
		"the challenge of another flow": b.logInByPasskey(page, credential(mine, strange)),
		"a different origin":            other.logInByPasskey(strange, credential(&lying, strange)),
		"nothing":                       b.form(b.authorize(request(c)), "/login/passkey"),
	} {
		wantStatus(t, name, got, http.StatusUnprocessableEntity)
		wantText(t, name, got, `id="passkey-error" role="alert">`)
	}

	// A passkey is only valid in its project, and only for its own subscriber.
	page = b.authorize(request(foreign))
	got := b.logInByPasskey(page, credential(mine, page))
	wantStatus(t, "a passkey of another project", got, http.StatusUnprocessableEntity)
	wantText(t, "a passkey of another project", got, "unknown here")

	page = b.logIn(b.authorize(request(c)), email, secret)
	got = b.form(page, "/login/factor", "credential", credential(hers, page), "with", "passkey")
	wantStatus(t, "another subscriber's passkey as the second factor", got, http.StatusUnprocessableEntity)

	_, err = w.fabric.Subscribers.Update(t.Context(), w.project.ID, grace.ID,
		fabric.SubscriberInput{Disabled: new(true)})
	must(t, err)
	page = other.authorize(request(c))
	got = other.logInByPasskey(page, credential(hers, page))
	wantStatus(t, "a disabled subscriber's passkey", got, http.StatusUnprocessableEntity)
	wantText(t, "a disabled subscriber's passkey", got, "unknown here")
}

// TestPasskeysAreCounted shows that refused passkeys count against the login limits, like wrong
// passwords.
func TestPasskeysAreCounted(t *testing.T) {
	w := newWorld(t)
	w.limits.Set(limit.Rates{limit.LoginPerNetwork: {Burst: 2, Every: time.Hour}})
	c, _ := w.client(nil)

	b := w.newBrowser()
	page := b.authorize(request(c))
	for range 2 {
		wantStatus(t, "a refused passkey", b.logInByPasskey(page, "{}"), http.StatusUnprocessableEntity)
	}
	got := b.logInByPasskey(page, "{}")
	wantStatus(t, "one attempt too many", got, http.StatusTooManyRequests)
	wantText(t, "one attempt too many", got, "Too many attempts. Wait until", `id="password"`)
}

// TestSecondPasskeysAreCounted shows that refused passkeys also count if they are presented as
// second factors. An accepted passkey does not count.
func TestSecondPasskeysAreCounted(t *testing.T) {
	w := newWorld(t)
	w.limits.Set(limit.Rates{limit.LoginPerNetwork: {Burst: 2, Every: time.Hour}})
	c, _ := w.client(nil)
	device := w.passkey(w.ada.ID)
	logIn := func(b *browser) reply { return b.logIn(b.authorize(request(c)), email, secret) }
	prove := func(b *browser, page reply, credential string) reply {
		return b.form(page, "/login/factor", "with", "passkey", "credential", credential)
	}

	for range 3 {
		b := w.newBrowser()
		page := logIn(b)
		wantCode(t, "an accepted passkey", prove(b, page, string(device.Get(page.options(t)))))
	}
	b := w.newBrowser()
	page := logIn(b)
	for range 2 {
		wantStatus(t, "a refused passkey", prove(b, page, "{}"), http.StatusUnprocessableEntity)
	}
	for range 2 {
		got := prove(b, page, "{}")
		wantStatus(t, "one attempt too many", got, http.StatusTooManyRequests)
		wantText(t, "one attempt too many", got, "Too many attempts. Wait until")
	}

	// The audit trail records only once that the limit was reached.
	refused := audit.Filter{Action: "login", Outcome: audit.Refused}
	events, err := w.rows.ListAudit(t.Context(), refused, pages.Query{Size: pages.MaxSize})
	must(t, err)
	limited := 0
	for _, event := range events.Items {
		if event.Detail["reason"] == "too many tries" {
			limited++
		}
	}
	if limited != 1 {
		t.Errorf("the audit trail has %d refusals for too many tries, want 1", limited)
	}
}

// TestSecondPasskeyOnKnownDevice shows that strangers in the same network cannot lock out a person who
// presents a passkey as the second factor on a known device. The device has its own limit.
func TestSecondPasskeyOnKnownDevice(t *testing.T) {
	w, c, home := newKnownDevice(t)
	device := w.passkey(w.ada.ID)
	page := home.logIn(loginAgain(home, c), email, secret)
	credential := string(device.Get(page.options(t)))
	got := home.form(page, "/login/factor", "with", "passkey", "credential", credential)
	wantCode(t, "a passkey on a known device", got)

	page = home.logIn(loginAgain(home, c), email, secret)
	for range 3 {
		got = home.form(page, "/login/factor", "with", "passkey", "credential", "{}")
		wantStatus(t, "a refused passkey on a known device", got, http.StatusUnprocessableEntity)
	}
	got = home.form(page, "/login/factor", "with", "passkey", "credential", "{}")
	wantStatus(t, "one attempt too many on a known device", got, http.StatusTooManyRequests)
}

// TestOnlyPasskeyStays shows that the last passkey cannot be removed if its subscriber has no
// password.
func TestOnlyPasskeyStays(t *testing.T) {
	w := newWorld(t)
	grace, err := w.fabric.Subscribers.Create(t.Context(), w.project.ID,
		fabric.SubscriberInput{Email: new("grace@example.com")})
	must(t, err)

	device := w.passkey(grace.ID)
	b := w.newBrowser()
	page := b.get("/account?project=" + w.project.ID)
	page = b.logInByPasskey(page, string(device.Get(page.options(t))))
	wantText(t, "a login without a password", page, `id="account-page"`)

	factors, err := w.idp.Factors.List(t.Context(), idp.OwnerOf(grace.ID))
	must(t, err)
	got := b.onPage(page, "/account/factors/remove", "factor", factors[0].ID)
	wantStatus(t, "removing the only passkey", got, http.StatusUnprocessableEntity)
	wantText(t, "removing the only passkey", got, "the only way")
	left, err := w.idp.Factors.List(t.Context(), idp.OwnerOf(grace.ID))
	must(t, err)
	if len(left) != 1 {
		t.Errorf("the remaining factors are %v, want one", left)
	}
}
