package dashboard_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/operator"
)

var firstCode = regexp.MustCompile(`id="recovery-codes">\s*<li>([a-z2-7-]+)`)

// app sets up an authenticator app for the signed-in operator. It returns a function that
// generates codes, and a recovery code if the app is the first factor.
func (b browser) app() (code func() string, recovery string) {
	b.Helper()
	const path = "/dashboard/account/app"
	secret := b.get(path).secret(b.TB)
	code = func() string {
		c, err := totp.GenerateCode(secret, b.now())
		must(b, err)
		return c
	}
	done := b.post(path, path, url.Values{"code": {code()}})
	if m := firstCode.FindStringSubmatch(done.body); m != nil {
		recovery = m[1]
	}
	return code, recovery
}

// TestConfirmByFactor shows that sensitive actions require the second factor again, so that a
// stolen session and password are not enough. Wrong codes appear in the audit trail.
func TestConfirmByFactor(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	code, recovery := b.app()

	// A session that is not fresh must be confirmed.
	w.pass(operator.Freshness)
	keys := "/dashboard/projects/" + w.one.ID + "/keys/new"
	confirmPage := "/dashboard/confirm?next=" + url.QueryEscape(keys)
	b.get(keys).leadsTo(t, confirmPage)
	confirm := func(secret, code string) answer {
		t.Helper()
		form := url.Values{"password": {secret}, "code": {code}, "next": {keys}}
		return b.post(confirmPage, "/dashboard/confirm", form)
	}

	newPassword := url.Values{"current": {good}, "password": {good + "2"}}
	b.post("/dashboard/account", "/dashboard/account/password", newPassword).
		leadsTo(t, "/dashboard/confirm?next=%2Fdashboard%2Faccount")
	b.get(keys).leadsTo(t, confirmPage)

	// Without the right password and code, nothing is confirmed.
	used := code()
	for _, tt := range []struct{ name, secret, code string }{
		{"the password alone", good, ""},
		{"a wrong code", good, "000000"},
		{"a right code and a wrong password", "wrong", used},
		{"a wrong recovery code", good, "aaaaa-aaaaa"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			confirm(tt.secret, tt.code).wantRefused(t, `id="code"`)
			b.get(keys).leadsTo(t, confirmPage)
		})
	}

	// The code is still unused, since it was sent with a wrong password.
	before := b.cookie()
	confirm(good, used).leadsTo(t, keys)
	if b.cookie() == before {
		t.Error("the confirmation does not change the cookie")
	}
	b.get(keys).wantStatus(t, http.StatusOK)
	confirm(good, used).wantRefused(t) // a code is valid only once

	w.pass(operator.Freshness)
	confirm(good, recovery).leadsTo(t, keys)

	reasons := make(map[string]int)
	for _, e := range w.refusedLogins() {
		if e.Target.ID != "" {
			reasons[e.Detail["reason"]]++
		}
	}
	for reason, want := range map[string]int{"wrong_code": 3, "wrong password": 1, "code_used": 1} {
		if n := reasons[reason]; n != want {
			t.Errorf("the audit trail has the reason %q %d times, want %d; all reasons: %v", reason, n, want, reasons)
		}
	}
}

// refusedLogins returns the newest audit events about refused logins.
func (w *world) refusedLogins() []audit.Event {
	w.Helper()
	filter := audit.Filter{Action: "login", Outcome: audit.Refused}
	found, err := w.rows.ListAudit(w.Context(), filter, page.Query{Size: 100})
	must(w, err)
	return found.Items
}

// TestFactorGuesses shows that guesses at a second factor are limited, and that the audit trail
// records this at most once a minute.
func TestFactorGuesses(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	b.app()

	// The thief has the password, and tries codes.
	thief := w.browser()
	in := url.Values{"username": {"ann@example.com"}, "password": {good}}
	thief.post("/dashboard/login", "/dashboard/login", in).leadsTo(t, "/dashboard/factor")
	for try := range 9 {
		refused := thief.post("/dashboard/factor", "/dashboard/factor", url.Values{"code": {"000000"}})
		text := refused.find(t, `(?s)id="faults"[^>]*>(.*?)</`)
		isLimited := strings.Contains(text, "Too many")
		if want := try >= 6; isLimited != want {
			t.Errorf("the answer to code %d is %q, want it refused without a check: %t", try+1, text, want)
		}
	}

	reasons := make(map[string]int)
	for _, e := range w.refusedLogins() {
		reasons[e.Detail["reason"]]++
		if e.At.IsZero() || time.Since(e.At) > time.Hour {
			t.Errorf("an event is at %v, want it within the last hour", e.At)
		}
		if e.Actor.Kind != audit.Operator {
			t.Errorf("an event is by %v, want an operator", e.Actor)
		}
	}
	if n := reasons["wrong_code"]; n != 6 {
		t.Errorf("the audit trail has %d wrong codes, want 6; all reasons: %v", n, reasons)
	}
	if n := reasons["too many tries"]; n != 1 {
		t.Errorf("the audit trail has %d refusals for too many tries, want 1; all reasons: %v", n, reasons)
	}
}
