package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"github.com/selvage/selvage/operator"
)

// TestSetupLink shows that the first operator joins through a link, and that the link works only once.
func TestSetupLink(t *testing.T) {
	w := newWorldThat(t, operator.Roles()...)
	_, token, err := w.operators.First(t.Context())
	must(t, err)
	b, setup := w.browser(), "/dashboard/setup?token="+token
	for range 3 { // opening the link does not use it
		if a := b.get(setup); a.StatusCode != http.StatusOK {
			t.Fatalf("%s, want 200", a)
		}
	}

	weak := setupForm(token)
	weak.Set("password", "short")
	b.post(setup, "/dashboard/setup", weak).wantRefused(t, `value="ann@example.com"`)

	weak.Set("password", "annabelle's own password")
	weak.Set("username", "annabelle@example.com")
	guessable := b.post(setup, "/dashboard/setup", weak).body
	for _, tt := range []struct{ name, part, want string }{
		{"the summary", between(guessable, `id="faults"`, "</div>"), ">Password is too easy to guess.</a>"},
		{"the error", between(guessable, `id="password-fault"`, "</p>"), "guess: it contains your email address."},
		{"the field of the password", between(guessable, `<input id="password"`, ">"), " autofocus"},
	} {
		if !strings.Contains(tt.part, tt.want) {
			t.Errorf("after a weak password, %s is %q, want it to contain %q", tt.name, tt.part, tt.want)
		}
	}
	if field := between(guessable, `<input id="username"`, ">"); strings.Contains(field, "autofocus") {
		t.Errorf("after a weak password, the field of the email is %q, want it not to have the focus", field)
	}

	// The link is used up, and no other page is accessible without a second factor.
	b.post(setup, "/dashboard/setup", setupForm(token)).leadsTo(t, "/dashboard/factor")
	w.browser().get(setup).wantStatus(t, http.StatusNotFound)
	b.get("/dashboard").leadsTo(t, "/dashboard/login")
	b.get("/dashboard/factor").leadsTo(t, "/dashboard/enrol")
}

// setupForm returns the form with which Ann sets up her account.
func setupForm(token string) url.Values {
	return url.Values{"token": {token}, "username": {"ann@example.com"}, "name": {"Ann"}, "password": {good}}
}

// enrolFirst sets up the first operator with an authenticator app. It returns the operator's browser,
// a function that returns the app's current code, and a recovery code.
func enrolFirst(t *testing.T, w *world) (b browser, code func() string, recovery string) {
	t.Helper()
	_, token, err := w.operators.First(t.Context())
	must(t, err)
	b = w.browser()
	b.post("/dashboard/setup?token="+token, "/dashboard/setup", setupForm(token)).leadsTo(t, "/dashboard/factor")

	before := b.cookie()
	secret := b.get("/dashboard/enrol").secret(t)
	b.post("/dashboard/enrol", "/dashboard/enrol", url.Values{"code": {"000000"}}).wantRefused(t)
	code = func() string {
		c, err := totp.GenerateCode(secret, w.now())
		must(t, err)
		return c
	}

	done := b.post("/dashboard/enrol", "/dashboard/enrol", url.Values{"code": {code()}})
	if b.cookie() == before {
		t.Error("setting up the second factor does not change the cookie")
	}
	return b, code, done.find(t, `id="recovery-codes">\s*<li>([a-z2-7-]+)`)
}

// TestFirstOperator shows that the first operator sets up a second factor if the installation
// requires one. At the next sign-in, the password alone opens no page, and cannot be used to set up
// another app.
func TestFirstOperator(t *testing.T) {
	w := newWorldThat(t, operator.Roles()...)
	b, code, _ := enrolFirst(t, w)
	b.get("/dashboard").leadsTo(t, "/dashboard/projects/"+w.one.ID)
	b.post("/dashboard/account", "/dashboard/logout", url.Values{}).leadsTo(t, "/dashboard/login")
	b.get("/dashboard/account").leadsTo(t, "/dashboard/login?next=%2Fdashboard%2Faccount")

	in := url.Values{"username": {"ANN@example.com"}, "password": {good}, "next": {"/dashboard/account"}}
	b.post("/dashboard/login", "/dashboard/login", in).leadsTo(t, "/dashboard/factor?next=%2Fdashboard%2Faccount")
	b.get("/dashboard/account").leadsTo(t, "/dashboard/login?next=%2Fdashboard%2Faccount")
	b.get("/dashboard/enrol").leadsTo(t, "/dashboard/factor")
	w.pass(time.Minute)
	proof := url.Values{"code": {code()}, "next": {"/dashboard/account"}}
	b.post("/dashboard/factor", "/dashboard/factor", proof).leadsTo(t, "/dashboard/account")
	b.get("/dashboard/account").wantText(t, "Authenticator app", "10 codes are left.")
}

// TestRecoveryCode shows that an operator's recovery code works only once.
func TestRecoveryCode(t *testing.T) {
	w := newWorldThat(t, operator.Roles()...)
	_, _, recovery := enrolFirst(t, w)
	in := url.Values{"username": {"ann@example.com"}, "password": {good}}
	proof := url.Values{"code": {recovery}}

	first := w.browser()
	first.post("/dashboard/login", "/dashboard/login", in)
	first.post("/dashboard/factor", "/dashboard/factor", proof).leadsTo(t, "/dashboard")

	second := w.browser()
	second.post("/dashboard/login", "/dashboard/login", in)
	second.post("/dashboard/factor", "/dashboard/factor", proof).wantRefused(t)
}
