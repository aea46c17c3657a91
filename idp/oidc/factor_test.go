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
	ctx, o := context.Background(), idp.OwnerOf(w.ada.ID)
	e, err := w.idp.Factors.BeginTOTP(ctx, o, "test", "Acme", email)
	must(w.t, err)
	must(w.t, w.idp.Factors.ConfirmTOTP(ctx, o, false, "test", factortest.Code(e.Secret, w.now())))
	w.pass(time.Minute) // the next code is then different
	return e.Secret
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
	for _, way := range id["amr"].([]any) {
		amr = append(amr, text(way))
	}
	return text(id["acr"]), amr
}

func wantProven(t *testing.T, what, acr string, amr []string, want ...string) {
	t.Helper()
	if acr != "2" || !slices.Equal(amr, want) {
		t.Errorf("%s: acr %s, amr %v, want 2 and %v", what, acr, amr, want)
	}
}

// TestLoginWithTOTP shows that a subscriber with a second factor cannot sign in with only a
// password. Each code is accepted only once.
func TestLoginWithTOTP(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	key := w.app()
	b := w.browser()

	page := b.logIn(b.authorize(request(c)), email, secret)
	if !strings.Contains(page.body, `autocomplete="one-time-code"`) || page.param("code") != "" {
		t.Fatalf("after the password: %d %s, want the page for the code", page.status, page.body)
	}

	if got := b.authorize(request(c, "prompt", "none")); got.param("error") != "login_required" {
		t.Errorf("prompt=none after only the password: %v, want login_required", got.parameters())
	}
	if got := b.form(page, "/login/factor", "code", "000000"); got.status != http.StatusUnprocessableEntity ||
		!strings.Contains(got.body, "The code is wrong.") {
		t.Errorf("a wrong code: %d %s, want 422", got.status, got.body)
	}

	// The code is only accepted in the browser in which the password was entered.
	if got := w.browser().form(page, "/login/factor", "code",
		factortest.Code(key, w.now())); got.param("code") != "" || got.status != http.StatusForbidden {
		t.Errorf("the right code in another browser: %d %s, want 403", got.status, got.body)
	}

	code := factortest.Code(key, w.now())
	acr, amr := w.proven(c, b.form(page, "/login/factor", "code", code))
	wantProven(t, "password and app", acr, amr, "pwd", "otp", "mfa")

	// A used code is refused, and the password must have been entered recently.
	other := w.browser()
	page = other.logIn(other.authorize(request(c)), email, secret)
	if got := other.form(page, "/login/factor", "code", code); got.status != http.StatusUnprocessableEntity ||
		!strings.Contains(got.body, "already used") {
		t.Errorf("the same code again: %d %s, want 422", got.status, got.body)
	}

	w.pass(11 * time.Minute)
	if got := other.form(page, "/login/factor", "code",
		factortest.Code(key, w.now())); !strings.Contains(got.body, `id="password"`) {
		t.Errorf("a code long after the password: %d %s, want the login page", got.status, got.body)
	}
}

// TestFactorGuesses shows that a person who knows the password can guess only six codes, with any
// number of browsers. The owner is not locked out on a device that signed in before.
func TestFactorGuesses(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	key := w.app()

	// The owner signs in at home.
	home := w.browser()
	page := home.logIn(home.authorize(request(c)), email, secret)
	w.proven(c, home.form(page, "/login/factor", "code", factortest.Code(key, w.now())))
	w.pass(time.Minute)

	// A thief tries codes from five browsers.
	looked := 0
	for range 5 {
		thief := w.browser()
		page := thief.logIn(thief.authorize(request(c)), email, secret)
		for range 2 {
			switch got := thief.form(page, "/login/factor", "code", "000000"); got.status {
			case http.StatusUnprocessableEntity:
				looked++
			case http.StatusTooManyRequests:
			default:
				t.Errorf("a wrong code = %d, want 422 or 429", got.status)
			}
		}
	}

	if looked != 6 {
		t.Errorf("%d codes from five browsers were checked, want 6", looked)
	}

	// After this, an unknown browser is refused, but the owner's browser is not.
	stranger := w.browser()
	page = stranger.logIn(stranger.authorize(request(c)), email, secret)
	if got := stranger.form(page, "/login/factor", "code",
		factortest.Code(key, w.now())); got.status != http.StatusTooManyRequests {
		t.Errorf("the right code in an unknown browser = %d, want 429", got.status)
	}

	page = home.logIn(home.authorize(request(c, "prompt", "login")), email, secret)
	w.proven(c, home.form(page, "/login/factor", "code", factortest.Code(key, w.now())))

	// The audit trail contains each guess. It also contains, once, that the limit was reached.
	events, err := w.rows.ListAudit(t.Context(), audit.Filter{Action: "login", Outcome: audit.Refused},
		pages.Query{Size: 100})
	must(t, err)
	reasons := map[string]int{}
	for _, e := range events.Items {
		reasons[e.Detail["reason"]]++
	}
	if reasons["wrong_code"] != 6 || reasons["too many tries"] != 1 {
		t.Errorf("the audit trail has the reasons %v, want six wrong codes and one refusal for too many tries",
			reasons)
	}
}

// TestOneCodeTwoLogins shows that only one of two concurrent logins with the same code succeeds.
func TestOneCodeTwoLogins(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	key := w.app()
	code := factortest.Code(key, w.now())

	var all sync.WaitGroup
	got := make([]reply, 2)
	for i := range got {
		b := w.browser()
		page := b.logIn(b.authorize(request(c)), email, secret)
		all.Go(func() { got[i] = b.form(page, "/login/factor", "code", code) })
	}
	all.Wait()
	if one, two := got[0].param("code") != "", got[1].param("code") != ""; one == two {
		t.Errorf("concurrent logins with one code: %v and %v, want one success", one, two)
	}
}

// TestLoginWithRecoveryCode shows that a recovery code can be used as a second factor, once.
func TestLoginWithRecoveryCode(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	w.app()
	codes, err := w.idp.Factors.NewCodes(t.Context(), idp.OwnerOf(w.ada.ID))
	must(t, err)

	for i, want := range []bool{true, false} {
		b := w.browser()
		page := b.logIn(b.authorize(request(c)), email, secret)
		got := b.form(page, "/login/factor", "with", "recovery_codes", "code", codes[0])
		if (got.param("code") != "") != want {
			t.Errorf("use %d of a recovery code: %d %v", i+1, got.status, got.parameters())
		}
		if want {
			acr, amr := w.proven(c, got)
			wantProven(t, "password and recovery code", acr, amr, "pwd", "mfa")
		}
	}
}

// TestPasswordChangesBetween shows that a login fails if the password changes between its two
// steps.
func TestPasswordChangesBetween(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	key := w.app()
	b := w.browser()
	page := b.logIn(b.authorize(request(c)), email, secret)
	fresh := "violet ferry kitchen 9"
	_, err := w.fabric.Subscribers.Update(t.Context(), w.project.ID, w.ada.ID, fabric.SubscriberInput{Password: &fresh})
	must(t, err)
	if got := b.form(page, "/login/factor", "code",
		factortest.Code(key, w.now())); !strings.Contains(got.body, `id="password"`) {
		t.Errorf("with the old password and a code: %d %v, want the login page", got.status, got.parameters())
	}
}

// TestStepUp shows that a login with only a password can be raised by a second factor if a request
// requires it.
func TestStepUp(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	for _, pair := range [][]string{{"acr_values", "2"},
		{"claims", `{"id_token":{"acr":{"essential":true,"value":"2"}}}`}} {

		_ = w.idp.Factors.Remove(t.Context(), idp.OwnerOf(w.ada.ID), w.appID())
		b := w.browser()
		low := idClaims(t, w.redeem(c, b.code(c)).json(t))
		before := b.cookie()
		key := w.app()

		// prompt=none cannot answer this request. Other requests need only one factor.
		if got := b.authorize(request(c, append(pair, "prompt", "none")...)); got.param("error") != "login_required" {
			t.Errorf("%v with prompt=none: %v, want login_required", pair, got.parameters())
		}
		if got := b.authorize(request(c, "acr_values", "1")); got.param("code") == "" {
			t.Errorf("a request that needs only one factor: %v, want a code", got.parameters())
		}

		// The person is asked only for the second factor, and cannot skip it.
		page := b.authorize(request(c, pair...))
		if strings.Contains(page.body, `id="password"`) || !strings.Contains(page.body, "one-time-code") {
			t.Fatalf("%v shows: %s", pair, page.body)
		}
		if got := b.get("/consent?id=" +
			hiddenID.FindStringSubmatch(page.body)[1]); got.status != http.StatusBadRequest {
			t.Errorf("skipping the page: %d %s, want 400", got.status, got.body)
		}

		// The login keeps its id and gets a new cookie.
		got := b.form(page, "/login/factor", "code", factortest.Code(key, w.now()))
		high := idClaims(t, w.redeem(c, got.param("code")).json(t))
		if high["acr"] != "2" || high["sid"] != low["sid"] || high["auth_time"] != low["auth_time"] {
			t.Errorf("%v: first %v, then %v, want the same login with acr 2", pair, low, high)
		}
		if after := b.cookie(); after == "" || after == before {
			t.Errorf("the cookie is still %q", after)
		}

		if got := b.authorize(request(c, append(pair, "prompt", "none")...)); got.param("code") == "" {
			t.Errorf("%v again: %v, want a code", pair, got.parameters())
		}
	}
}

// appID returns the id of ada's authenticator app, or "".
func (w *world) appID() string {
	all, err := w.idp.Factors.List(context.Background(), idp.OwnerOf(w.ada.ID))
	must(w.t, err)
	for _, f := range all {
		if f.Type == factor.TypeTOTP {
			return f.ID
		}
	}
	return ""
}

// cookie returns the browser's session cookie, or "".
func (b *browser) cookie() string {
	at, err := url.Parse(b.w.url)
	must(b.w.t, err)
	for _, c := range b.http.Jar.Cookies(at) {
		if strings.HasSuffix(c.Name, "selvage") {
			return c.Value
		}
	}
	return ""
}

// TestFactorTriesDoNotMultiply shows that all browsers together can make six guesses. These include
// guesses in logins and on devices that are older than the factor, and after setting a password
// with a link.
func TestFactorTriesDoNotMultiply(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)

	before := []*browser{w.browser(), w.browser()}
	for _, b := range before {
		b.code(c)
	}
	w.app()

	looked := 0
	try := func(b *browser, page reply) {
		t.Helper()
		for range 2 {
			switch got := b.form(page, "/login/factor", "code", "000000"); got.status {
			case http.StatusUnprocessableEntity:
				looked++
			case http.StatusTooManyRequests:
			default:
				t.Errorf("a wrong code = %d %s, want 422 or 429", got.status, got.body)
			}
		}
	}

	// Guess in logins and on devices that are older than the factor.
	for _, b := range before {
		try(b, b.authorize(request(c, "acr_values", "2"))) // the old login must present the factor
		try(b, b.logIn(b.authorize(request(c, "prompt", "login")), email, secret))
	}
	if looked != 6 {
		t.Errorf("%d codes from earlier logins and devices were checked, want 6", looked)
	}

	// Guess after setting a password with a link, each time in another browser.
	for i := range 2 {
		token, fresh := strings.Repeat(string(rune('a'+i)), 52), fmt.Sprint("granite-otter-nine-", i)
		must(t, w.rows.CreateLink(t.Context(), idp.Link{
			Hash: session.Digest(token), Purpose: mail.Reset, ProjectID: w.project.ID, SubscriberID: w.ada.ID,
			Email: email, Bound: email,
			Created: w.now(), Expires: w.now().Add(time.Hour),
		}))

		b := w.browser()
		page := b.authorize(request(c))
		if got := b.post("/reset",
			url.Values{"token": {token}, "password": {fresh}}); !strings.Contains(got.body, `id="password-set"`) {
			t.Fatalf("setting a password by a link: %d %s", got.status, got.body)
		}
		try(b, b.logIn(page, email, fresh))
	}

	if looked != 6 {
		t.Errorf("%d codes were checked after new passwords by links, want no more than 6", looked)
	}
}
