package oidc_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/factor/factortest"
	"github.com/selvage/selvage/internal/mail"
	pages "github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/session"
)

// app sets up an authenticator app for ada, and returns its secret.
func (w *world) app() string {
	w.t.Helper()
	ctx, owner := context.Background(), idp.OwnerOf(w.ada.ID)
	begun, err := w.idp.Factors.BeginTOTP(ctx, owner, "test", "Acme", email)
	must(w.t, err)
	code := factortest.Code(begun.Secret, w.now())
	must(w.t, w.idp.Factors.ConfirmTOTP(ctx, owner, false, "test", code))
	w.pass(time.Minute) // the next code is then different
	return begun.Secret
}

// form posts to path with the request id in page. pairs are additional fields.
func (b *browser) form(page reply, path string, pairs ...string) reply {
	b.w.t.Helper()
	id := hiddenID.FindStringSubmatch(page.body)
	if id == nil {
		b.w.t.Fatalf("no login form: %d %s", page.status, page.body)
	}
	return b.post(path, with(url.Values{"id": {id[1]}}, pairs...))
}

// proven redeems the code in a response, and returns the acr and amr of the ID token.
func (w *world) proven(c idp.Client, got reply) (acr string, amr []string) {
	w.t.Helper()
	if got.param("code") == "" {
		w.t.Fatalf("no code: %d %v %s", got.status, got.location, got.body)
	}
	id := idClaims(w.t, w.redeem(c, got.param("code")).json(w.t))
	for _, method := range id["amr"].([]any) {
		amr = append(amr, text(method))
	}
	return text(id["acr"]), amr
}

// wantProven checks the acr and amr of a login with two factors. methods is the expected amr.
func wantProven(t *testing.T, name, acr string, amr []string, methods ...string) {
	t.Helper()
	if acr != "2" {
		t.Errorf("%s: acr %s, want 2", name, acr)
	}
	if !slices.Equal(amr, methods) {
		t.Errorf("%s: amr %v, want %v", name, amr, methods)
	}
}

// enterCode submits a code from an authenticator app on the page for the second factor.
func (b *browser) enterCode(page reply, code string) reply {
	b.w.t.Helper()
	return b.form(page, "/login/factor", "code", code)
}

// TestLoginWithTOTP shows that a subscriber with a second factor cannot sign in with only a
// password. Each code is accepted only once.
func TestLoginWithTOTP(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	key := w.app()
	b := w.newBrowser()

	page := b.logIn(b.authorize(request(c)), email, secret)
	wantText(t, "after the password", page, `autocomplete="one-time-code"`)
	wantParam(t, "after the password", page, "code", "")
	silent := b.authorize(request(c, "prompt", "none"))
	wantParam(t, "prompt=none after only the password", silent, "error", "login_required")

	got := b.enterCode(page, "000000")
	wantStatus(t, "a wrong code", got, http.StatusUnprocessableEntity)
	wantText(t, "a wrong code", got, "The code is wrong.")

	// The code is only accepted in the browser in which the password was entered.
	got = w.newBrowser().enterCode(page, factortest.Code(key, w.now()))
	wantStatus(t, "the right code in another browser", got, http.StatusForbidden)
	wantParam(t, "the right code in another browser", got, "code", "")

	code := factortest.Code(key, w.now())
	acr, amr := w.proven(c, b.enterCode(page, code))
	wantProven(t, "password and app", acr, amr, "pwd", "otp", "mfa")

	// A used code is refused, and the password must have been entered recently.
	other := w.newBrowser()
	page = other.logIn(other.authorize(request(c)), email, secret)
	got = other.enterCode(page, code)
	wantStatus(t, "the same code again", got, http.StatusUnprocessableEntity)
	wantText(t, "the same code again", got, "already used")

	w.pass(11 * time.Minute)
	got = other.enterCode(page, factortest.Code(key, w.now()))
	wantText(t, "a code long after the password", got, `id="password"`)
}

// guessTwice enters two wrong codes, and returns how many of them were checked.
func (b *browser) guessTwice(page reply) (checked int) {
	b.w.t.Helper()
	for range 2 {
		switch got := b.enterCode(page, "000000"); got.status {
		case http.StatusUnprocessableEntity:
			checked++
		case http.StatusTooManyRequests:
		default:
			b.w.t.Errorf("a wrong code: status %d, want 422 or 429: %s", got.status, got.body)
		}
	}
	return checked
}

// TestFactorGuesses shows that a person who knows the password can guess only six codes, with any
// number of browsers. The owner is not locked out on a device that signed in before.
func TestFactorGuesses(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	key := w.app()

	// The owner signs in at home.
	home := w.newBrowser()
	page := home.logIn(home.authorize(request(c)), email, secret)
	w.proven(c, home.enterCode(page, factortest.Code(key, w.now())))
	w.pass(time.Minute)

	// A thief tries codes from five browsers.
	checked := 0
	for range 5 {
		thief := w.newBrowser()
		checked += thief.guessTwice(thief.logIn(thief.authorize(request(c)), email, secret))
	}
	if checked != 6 {
		t.Errorf("%d codes from five browsers were checked, want 6", checked)
	}

	// After this, an unknown browser is refused, but the owner's browser is not.
	stranger := w.newBrowser()
	page = stranger.logIn(stranger.authorize(request(c)), email, secret)
	got := stranger.enterCode(page, factortest.Code(key, w.now()))
	wantStatus(t, "the right code in an unknown browser", got, http.StatusTooManyRequests)

	page = home.logIn(home.authorize(request(c, "prompt", "login")), email, secret)
	w.proven(c, home.enterCode(page, factortest.Code(key, w.now())))

	// The audit trail contains each guess. It records only once that the limit was reached.
	refused := audit.Filter{Action: "login", Outcome: audit.Refused}
	events, err := w.rows.ListAudit(t.Context(), refused, pages.Query{Size: 100})
	must(t, err)
	reasons := map[string]int{}
	for _, event := range events.Items {
		reasons[event.Detail["reason"]]++
	}
	if n := reasons["wrong_code"]; n != 6 {
		t.Errorf("the audit trail has %d wrong codes, want 6", n)
	}
	if n := reasons["too many tries"]; n != 1 {
		t.Errorf("the audit trail has %d refusals for too many tries, want 1", n)
	}
}

// TestOneCodeTwoLogins shows that only one of two concurrent logins with the same code succeeds.
func TestOneCodeTwoLogins(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	key := w.app()
	code := factortest.Code(key, w.now())

	var logins sync.WaitGroup
	replies := make([]reply, 2)
	for i := range replies {
		b := w.newBrowser()
		page := b.logIn(b.authorize(request(c)), email, secret)
		logins.Go(func() { replies[i] = b.enterCode(page, code) })
	}
	logins.Wait()

	succeeded := 0
	for _, got := range replies {
		if got.param("code") != "" {
			succeeded++
		}
	}
	if succeeded != 1 {
		t.Errorf("%d of two concurrent logins with one code succeeded, want 1", succeeded)
	}
}

// TestLoginWithRecoveryCode shows that a recovery code can be used as a second factor, once.
func TestLoginWithRecoveryCode(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	w.app()
	codes, err := w.idp.Factors.NewCodes(t.Context(), idp.OwnerOf(w.ada.ID))
	must(t, err)

	enter := func() reply {
		b := w.newBrowser()
		page := b.logIn(b.authorize(request(c)), email, secret)
		return b.form(page, "/login/factor", "with", "recovery_codes", "code", codes[0])
	}
	acr, amr := w.proven(c, enter())
	wantProven(t, "password and recovery code", acr, amr, "pwd", "mfa")
	wantParam(t, "the same recovery code again", enter(), "code", "")
}

// TestPasswordChangesBetween shows that a login fails if the password changes between its two
// steps.
func TestPasswordChangesBetween(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	key := w.app()
	b := w.newBrowser()
	page := b.logIn(b.authorize(request(c)), email, secret)
	change := fabric.SubscriberInput{Password: new("violet ferry kitchen 9")}
	_, err := w.fabric.Subscribers.Update(t.Context(), w.project.ID, w.ada.ID, change)
	must(t, err)
	got := b.enterCode(page, factortest.Code(key, w.now()))
	wantText(t, "with the old password and a code", got, `id="password"`)
}

// appID returns the id of ada's authenticator app, or "".
func (w *world) appID() string {
	factors, err := w.idp.Factors.List(context.Background(), idp.OwnerOf(w.ada.ID))
	must(w.t, err)
	for _, f := range factors {
		if f.Type == factor.TypeTOTP {
			return f.ID
		}
	}
	return ""
}

// TestFactorTriesDoNotMultiply shows that all browsers together can make six guesses. This includes
// guesses in logins and on devices that are older than the factor, and guesses after a password was
// set with a link.
func TestFactorTriesDoNotMultiply(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)

	known := []*browser{w.newBrowser(), w.newBrowser()}
	for _, b := range known {
		b.code(c)
	}
	w.app()

	// Guess in logins and on devices that are older than the factor.
	checked := 0
	for _, b := range known {
		checked += b.guessTwice(b.authorize(request(c, "acr_values", "2"))) // the old login must present the factor
		checked += b.guessTwice(b.logIn(b.authorize(request(c, "prompt", "login")), email, secret))
	}
	if checked != 6 {
		t.Errorf("%d codes from earlier logins and devices were checked, want 6", checked)
	}

	// Guess after setting a password with a link, each time in another browser.
	for i := range 2 {
		token, fresh := strings.Repeat(string(rune('a'+i)), 52), fmt.Sprint("granite-otter-nine-", i)
		must(t, w.rows.CreateLink(t.Context(), idp.Link{
			Hash:         session.Digest(token),
			Purpose:      mail.Reset,
			ProjectID:    w.project.ID,
			SubscriberID: w.ada.ID,
			Email:        email,
			Bound:        email,
			Created:      w.now(),
			Expires:      w.now().Add(time.Hour),
		}))

		b := w.newBrowser()
		page := b.authorize(request(c))
		got := b.post("/reset", url.Values{"token": {token}, "password": {fresh}})
		wantText(t, "setting a password with a link", got, `id="password-set"`)
		if n := b.guessTwice(b.logIn(page, email, fresh)); n != 0 {
			t.Errorf("%d codes were checked after a password was set with a link, want none", n)
		}
	}
}
