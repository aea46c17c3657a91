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
	if m := firstCode.FindStringSubmatch(b.post(path, path, url.Values{"code": {code()}}).body); m != nil {
		recovery = m[1] // shown for the first factor
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
	page1 := "/dashboard/confirm?next=" + url.QueryEscape(keys)
	b.get(keys).leadsTo(t, page1)
	confirm := func(secret, code string) answer {
		t.Helper()
		return b.post(page1, "/dashboard/confirm", url.Values{"password": {secret}, "code": {code}, "next": {keys}})
	}

	b.post("/dashboard/account", "/dashboard/account/password",
		url.Values{"current": {good}, "password": {good + "2"}}).leadsTo(
		t, "/dashboard/confirm?next=%2Fdashboard%2Faccount")
	b.get(keys).leadsTo(t, page1)

	// Without the right password and code, nothing is confirmed.
	used := code()
	for _, tt := range []struct{ name, secret, code string }{
		{"the password alone", good, ""}, {"a wrong code", good, "000000"},
		{"a right code and a wrong password", "wrong", used}, {"a wrong recovery code", good, "aaaaa-aaaaa"},
	} {
		if a := confirm(tt.secret, tt.code); a.StatusCode != http.StatusUnprocessableEntity ||
			!strings.Contains(a.body, `id="code"`) {
			t.Errorf("%s: %s, want 422 that asks for a code", tt.name, a.Status)
		}
		b.get(keys).leadsTo(t, page1)
	}

	// The code is still unused, since it was sent with a wrong password.
	before := b.cookie()
	confirm(good, used).leadsTo(t, keys)
	if b.cookie() == before {
		t.Error("the confirmation does not change the cookie")
	}
	if a := b.get(keys); a.StatusCode != http.StatusOK {
		t.Errorf("after the confirmation: %s, want 200", a.Status)
	}

	if a := confirm(good, used); a.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("the same code again: %s, want 422", a.Status)
	}
	w.pass(operator.Freshness)
	confirm(good, recovery).leadsTo(t, keys)

	reasons := map[string]int{}
	found, err := w.rows.ListAudit(t.Context(), audit.Filter{Action: "login", Outcome: audit.Refused},
		page.Query{Size: 100})
	must(t, err)
	for _, e := range found.Items {
		if e.Target.ID != "" {
			reasons[e.Detail["reason"]]++
		}
	}
	if reasons["wrong_code"] != 3 || reasons["wrong password"] != 1 || reasons["code_used"] != 1 {
		t.Errorf("the audit trail has %v, want three wrong codes, a used one and a wrong password", reasons)
	}
}

// TestFactorGuesses shows that guesses at a second factor are limited, and that the audit trail
// records this once a minute.
func TestFactorGuesses(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	b.app()

	// The thief has the password, and tries codes.
	thief := w.browser()
	thief.post("/dashboard/login", "/dashboard/login",
		url.Values{"username": {"ann@example.com"}, "password": {good}}).leadsTo(t, "/dashboard/factor")
	var texts []string
	for range 9 {
		a := thief.post("/dashboard/factor", "/dashboard/factor", url.Values{"code": {"000000"}})
		texts = append(texts, a.find(t, `(?s)id="faults"[^>]*>(.*?)</`))
	}

	if strings.Contains(texts[5], "Too many") || !strings.Contains(texts[6], "Too many") ||
		!strings.Contains(texts[8], "Too many") {
		t.Errorf("the answers to nine codes are %q, want six checked", texts)
	}

	found, err := w.rows.ListAudit(t.Context(), audit.Filter{Action: "login", Outcome: audit.Refused},
		page.Query{Size: 100})
	must(t, err)
	reasons := map[string]int{}
	for _, e := range found.Items {
		reasons[e.Detail["reason"]]++
		if e.At.IsZero() || time.Since(e.At) > time.Hour || e.Actor.Kind != audit.Operator {
			t.Errorf("an event is at %v by %v, want a recent one by an operator", e.At, e.Actor)
		}
	}

	if reasons["wrong_code"] != 6 || reasons["too many tries"] != 1 {
		t.Errorf("the audit trail has the reasons %v, want six wrong codes and one refusal for too many tries",
			reasons)
	}
}
