package oidc_test

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/factor/factortest"
)

// TestEnrolDuringLogin shows that subscribers who lack a required second factor set one up during
// the login.
func TestEnrolDuringLogin(t *testing.T) {
	for name, require := range map[string]func(w *world, c *idp.Client) url.Values{
		"required by the project": func(w *world, _ *idp.Client) url.Values {
			_, err := w.fabric.Projects.Update(context.Background(), w.project.ID,
				fabric.ProjectChange{RequireFactor: new(true)})
			must(w.t, err)
			return nil
		},
		"required by the client": func(_ *world, c *idp.Client) url.Values {
			c.RequireACR = "2"
			return nil
		},
		"required by the request": func(*world, *idp.Client) url.Values {
			return url.Values{"acr_values": {"2"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var more url.Values
			c, _ := w.client(func(c *idp.Client) { more = require(w, c) })
			params := request(c)
			maps.Copy(params, more)
			b := w.newBrowser()
			page := b.logIn(b.authorize(params), email, secret)

			// The login continues with the setup.
			wantText(t, "the page after the password", page, "Set up a second factor")
			shown := shownSecret(t, page)

			// The setup cannot be skipped.
			id := hiddenID.FindStringSubmatch(page.body)[1]
			wantParam(t, "skipping the setup", b.post("/login/continue", url.Values{"id": {id}}), "code", "")
			consent := b.post("/consent", url.Values{"id": {id}, "answer": {"allow"}})
			wantParam(t, "consenting before the setup", consent, "code", "")

			// After a wrong code, the page shows the same secret.
			wrong := b.form(page, "/login/enrol", "code", "000000")
			wantStatus(t, "a wrong code", wrong, http.StatusUnprocessableEntity)
			wantText(t, "a wrong code", wrong, shown)

			codes := b.form(page, "/login/enrol", "code", totpCode(w, shown))
			wantText(t, "the page after the setup", codes, `id="recovery-codes"`)
			wantNoText(t, "the page after the setup, which cannot be loaded again", codes, `action="/language"`)
			acr, amr := w.proven(c, b.form(codes, "/login/continue"))
			wantProven(t, name, acr, amr, "pwd", "otp", "mfa")
		})
	}
}

// TestEnrolContinuesTooLate shows that a person who keeps reading the recovery codes for longer than
// max_age signs in again, and that the request then continues.
func TestEnrolContinuesTooLate(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	b := w.newBrowser()
	b.code(c)
	w.pass(time.Second)
	page := b.authorize(request(c, "acr_values", "2", "max_age", "60"))
	shown := shownSecret(t, page)
	codes := b.form(page, "/login/enrol", "code", totpCode(w, shown))
	w.pass(2 * time.Minute)

	again := b.form(codes, "/login/continue")
	wantText(t, "continuing too late", again, `id="login-submit"`)
	factorPage := b.logIn(again, email, secret)
	acr, amr := w.proven(c, b.form(factorPage, "/login/factor", "code", totpCode(w, shown)))
	wantProven(t, "signing in again", acr, amr, "pwd", "otp", "mfa")
}

// shownSecret returns the secret for an authenticator app, as a page shows it.
func shownSecret(t *testing.T, page reply) string {
	t.Helper()
	m := regexp.MustCompile(`id="totp-secret">([A-Z2-7 ]+)<`).FindStringSubmatch(page.body)
	if m == nil {
		t.Fatalf("the page offers no app to set up: %d %s", page.status, page.body)
	}
	return m[1]
}

// totpCode returns the current code of an authenticator app with a secret that a page shows.
func totpCode(w *world, shown string) string {
	return factortest.Code(strings.ReplaceAll(shown, " ", ""), w.now())
}

// TestAccountFactors shows that people can add passkeys and apps on their account page.
func TestAccountFactors(t *testing.T) {
	w := newWorld(t)
	b := w.newBrowser()
	page := b.account()

	device := &factortest.Authenticator{Origin: strings.Replace(w.url, "127.0.0.1", "localhost", 1), Synced: true}
	credential := string(device.Create(page.options(t)))
	got := b.onPage(page, "/account/passkeys", "credential", credential, "name", "Phone <b>")
	wantText(t, "adding a passkey", got, `id="recovery-codes"`)
	page = b.account()
	wantText(t, "the account page", page, "Phone &lt;b&gt;", "synced across devices", "10 codes are left")

	app := b.onPage(page, "/account/app")
	got = b.onPage(app, "/account/app/confirm", "code", totpCode(w, shownSecret(t, app)))
	wantText(t, "setting up an app", got, "Your authenticator app is set up.")
	wantText(t, "new codes", b.onPage(page, "/account/codes"), `id="recovery-codes"`)

	// An old login may no longer change any of this. The person must sign in again first.
	w.pass(11 * time.Minute)
	page = b.get("/account")
	for _, path := range []string{
		"/account/app", "/account/codes", "/account/passkeys", "/account/factors/remove", "/account/password",
	} {
		wantText(t, path+" by an old login", b.onPage(page, path, "factor", w.appID()), `id="password"`)
	}
	if w.appID() == "" {
		t.Error("an old login removed the app")
	}
}

// TestFactorGuardsFactors shows what a login with only a password may do if it is older than the
// subscriber's second factor. It may no longer manage factors, or download the subscriber's data. The
// login in which the factor was set up may still do so.
func TestFactorGuardsFactors(t *testing.T) {
	w := newWorld(t)
	old, own := w.newBrowser(), w.newBrowser()

	stale := old.account()
	page := own.account()
	device := &factortest.Authenticator{Origin: strings.Replace(w.url, "127.0.0.1", "localhost", 1)}
	other := &factortest.Authenticator{Origin: device.Origin}
	late := string(other.Create(stale.options(t))) // begun before the subscriber had a factor
	own.onPage(page, "/account/passkeys", "credential", string(device.Create(page.options(t))), "name", "Phone")

	factors, err := w.idp.Factors.List(t.Context(), idp.OwnerOf(w.ada.ID))
	must(t, err)
	for path, fields := range map[string][]string{
		"/account/passkeys":       {"credential", late},
		"/account/factors/remove": {"factor", factors[0].ID},
		"/account/app":            nil,
		"/account/codes":          nil,
		"/account/password":       {"current", secret, "password", secret + " more"},
		"/account/email":          {"email", "mallory@example.com"},
		"/account/data":           nil,
	} {
		wantText(t, path+" by an earlier login", old.onPage(stale, path, fields...), `id="login-submit"`)
	}

	// The old login cannot add factors and has changed nothing.
	again := old.get("/account?project=" + w.project.ID)
	wantNoText(t, "the account page of an earlier login", again, "data-options")
	after, err := w.idp.Factors.List(t.Context(), idp.OwnerOf(w.ada.ID))
	must(t, err)
	if !slices.EqualFunc(after, factors, func(a, b factor.Factor) bool { return a.ID == b.ID }) {
		t.Errorf("the factors are %v, want them unchanged: %v", after, factors)
	}

	codes := own.onPage(own.account(), "/account/codes")
	wantText(t, "the login that set up the factor", codes, `id="recovery-codes"`)
}
