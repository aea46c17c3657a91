package dashboard_test

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/factor/factortest"
	"github.com/selvage/selvage/internal/limit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/operator"
)

const doorway, addPage = "/dashboard/login", "/dashboard/account/passkey"

// asked returns the passkey prompt on a page, and the form for its answer.
func (a answer) asked(t testing.TB) (options string, form url.Values) {
	t.Helper()
	options = a.find(t, `data-options="([^"]+)"`)
	return options, url.Values{"form": {a.find(t, `name="form" value="([^"]+)"`)},
		"prompt": {a.find(t, `name="prompt" value="([^"]+)"`)}}
}

// sendKey posts an authenticator's answer to a page.
func (b browser) sendKey(path string, form url.Values, credential []byte) answer {
	b.Helper()
	form.Set("credential", string(credential))
	r := b.request("POST", path, form)
	return b.send(r)
}

// passkey adds a passkey to the account of the signed-in operator.
func (b browser) passkey() *factortest.Authenticator {
	b.Helper()
	key := &factortest.Authenticator{Origin: b.named()}
	options, form := b.get(addPage).asked(b.TB)
	form.Set("name", "Laptop")
	if a := b.sendKey(addPage, form, key.Create([]byte(options))); a.StatusCode >= http.StatusBadRequest {
		b.Fatalf("adding a passkey: %s %s", a.Status, a.body)
	}
	return key
}

// show presents a passkey to a page that requests one. more holds additional form fields in pairs.
func (b browser) show(key *factortest.Authenticator, page, path string, more ...string) answer {
	b.Helper()
	options, form := b.get(page).asked(b.TB)
	for i := 0; i+1 < len(more); i += 2 {
		form.Set(more[i], more[i+1])
	}
	return b.sendKey(path, form, key.Get([]byte(options)))
}

// wrongKey fails the test unless the page says that the passkey was rejected.
func (a answer) wrongKey(t testing.TB, what string) {
	t.Helper()
	if a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.body, `id="passkey-error"`) {
		t.Errorf("%s: %s, want a refusal", what, a.Status)
	}
}

// TestPasskeyOfOperator shows that a passkey signs an operator in by itself, serves as a second
// factor after the password, and confirms the identity.
func TestPasskeyOfOperator(t *testing.T) {
	w := newWorld(t)
	o, b := w.operator("ann@example.com", ofAll)
	key := b.passkey()

	if a := b.get("/dashboard/account"); !strings.Contains(a.body, "<strong>Laptop</strong>") ||
		!strings.Contains(a.body, "10 codes are left.") {
		t.Errorf("the account page: %s", a.body)
	}

	// The passkey alone signs in, with two factors.
	alone := w.browser()
	alone.show(key, doorway, "/dashboard/login/passkey", "next", "/dashboard/account").leadsTo(t,
		"/dashboard/account")
	all, err := w.operators.Sessions(t.Context(), o.ID)
	must(t, err)
	if len(all) != 2 || strings.Join(all[0].AMR, " ") != "hwk user pop mfa" ||
		strings.Join(all[1].AMR, " ") != "pwd hwk user pop mfa" {
		t.Errorf("the sessions are %+v", all)
	}

	// The passkey is the second factor after the password, and the session gets a new cookie.
	second := w.browser()
	second.post(doorway, doorway, url.Values{"username": {"ann@example.com"}, "password": {good}}).leadsTo(t,
		"/dashboard/factor")
	second.get("/dashboard/account").leadsTo(t, "/dashboard/login?next=%2Fdashboard%2Faccount")
	before := second.cookie()
	second.show(key, "/dashboard/factor", "/dashboard/factor").leadsTo(t, "/dashboard")
	if second.cookie() == before {
		t.Error("presenting the second factor does not change the cookie")
	}

	// The passkey confirms the identity.
	w.pass(operator.Freshness)
	page1 := "/dashboard/confirm?next=" + url.QueryEscape(addPage)
	second.get(addPage).leadsTo(t, page1)
	second.show(key, page1, "/dashboard/confirm", "next", addPage).leadsTo(t, addPage)
	if a := second.get(addPage); a.StatusCode != http.StatusOK {
		t.Errorf("after the confirmation: %s, want 200", a.Status)
	}

	// If there is also an authenticator app, either can be used.
	code, _ := second.app()
	third := w.browser()
	third.post(doorway, doorway, url.Values{"username": {"ann@example.com"}, "password": {good}})
	if a := third.get("/dashboard/factor"); !strings.Contains(a.body, "or use a passkey") ||
		!strings.Contains(a.body, `id="code"`) {
		t.Errorf("the page for the second factor: %s", a.body)
	}

	w.pass(time.Minute)
	third.post("/dashboard/factor", "/dashboard/factor", url.Values{"code": {code()}}).leadsTo(t, "/dashboard")

	// The passkey can be renamed and removed.
	id := third.get("/dashboard/account").find(t, `passkeys/rename" class="line"><input type="hidden" name="form" `+
		`value="[^"]+"><input type="hidden" name="factor" value="([^"]+)"`)
	third.post("/dashboard/account", "/dashboard/account/passkeys/rename",
		url.Values{"factor": {id}, "name": {"Desk"}}).leadsTo(t, "/dashboard/account?done=changed")
	third.post("/dashboard/account", "/dashboard/account/factors/remove", url.Values{"factor": {id}}).leadsTo(
		t, "/dashboard/account?done=factor")

	w.browser().show(key, doorway, "/dashboard/login/passkey").wrongKey(t, "a removed passkey")
}

// TestPasskeyAttacks shows that the answer to a challenge is valid once, and only in the browser
// and on the page for which the challenge was made. The passkey must belong to the operator, and
// the device must have verified its user.
func TestPasskeyAttacks(t *testing.T) {
	w := newWorld(t)
	ann, a := w.operator("ann@example.com", ofAll)
	_, b := w.operator("bob@example.com", ofAll)
	mine, bobs := a.passkey(), b.passkey()

	// An answer is valid only in the browser of its challenge, and only once.
	first := w.browser()
	options, form := first.get(doorway).asked(t)
	used := mine.Get([]byte(options))
	stranger := w.browser()
	_, theirs := stranger.get(doorway).asked(t)
	stranger.sendKey("/dashboard/login/passkey", url.Values{"form": theirs["form"], "prompt": form["prompt"]},
		used).wrongKey(t, "an answer to another browser's challenge")

	first.sendKey("/dashboard/login/passkey", form, used).leadsTo(t, "/dashboard")
	again := w.browser()
	again.client.Jar = first.client.Jar
	again.post("/dashboard/account", "/dashboard/logout", nil)
	_, next := again.get(doorway).asked(t)
	again.sendKey("/dashboard/login/passkey", url.Values{"form": next["form"], "prompt": form["prompt"]},
		used).wrongKey(t, "the same answer again")

	// A device must name the right origin and verify its user.
	for _, tt := range []struct {
		what string
		key  factortest.Authenticator
	}{
		{"a different origin", factortest.Authenticator{Origin: "https://evil.example"}},
		{"without user verification", factortest.Authenticator{Origin: w.named(), Unverified: true}},
	} {
		lying := *mine
		lying.Origin, lying.Unverified = tt.key.Origin, tt.key.Unverified
		w.browser().show(&lying, doorway, "/dashboard/login/passkey").wrongKey(t, tt.what)
	}

	// Another operator's passkey is neither a second factor nor a confirmation.
	half := w.browser()
	half.post(doorway, doorway, url.Values{"username": {"ann@example.com"}, "password": {good}})
	half.show(bobs, "/dashboard/factor", "/dashboard/factor").wrongKey(
		t, "another operator's passkey as second factor")
	half.get("/dashboard/account").leadsTo(t, "/dashboard/login?next=%2Fdashboard%2Faccount")
	w.pass(operator.Freshness)
	a.show(bobs, "/dashboard/confirm", "/dashboard/confirm").wrongKey(t, "another operator's passkey to confirm")

	// The answer to a sign-in challenge is not accepted as a second factor either, because any
	// operator may answer such a challenge.
	options, form = w.browser().get(doorway).asked(t)
	_, at := half.get("/dashboard/factor").asked(t)
	half.sendKey("/dashboard/factor", url.Values{"form": at["form"], "prompt": form["prompt"]},
		mine.Get([]byte(options))).wrongKey(t, "the answer to another page")

	// A subscriber's passkey does not open the dashboard.
	email := "sub@example.com"
	sub, err := w.fabric.Subscribers.Create(t.Context(), w.one.ID, fabric.SubscriberInput{Email: &email})
	must(t, err)
	subs := &factortest.Authenticator{Origin: w.named()}
	begun, err := w.factors.BeginPasskey(t.Context(), idp.OwnerOf(sub.ID), "flow", email, email)
	must(t, err)
	_, err = w.factors.CreatePasskey(t.Context(), idp.OwnerOf(sub.ID), false, "flow", "", subs.Create(begun))
	must(t, err)
	w.browser().show(subs, doorway, "/dashboard/login/passkey").wrongKey(t, "a subscriber's passkey")

	// The passkey of a disabled operator does not open the dashboard either.
	off := true
	_, err = w.operators.Update(t.Context(), ann.ID, operator.Input{Disabled: &off}, "")
	must(t, err)
	w.browser().show(mine, doorway, "/dashboard/login/passkey").wrongKey(t, "the passkey of a disabled operator")

	found, err := w.rows.ListAudit(t.Context(), audit.Filter{Action: "login", Outcome: audit.Refused},
		page.Query{Size: 100})
	must(t, err)
	reasons := map[string]int{}
	for _, e := range found.Items {
		reasons[e.Detail["reason"]]++
	}
	if reasons["passkey_stale"] != 3 || reasons["passkey_refused"] != 4 || reasons["passkey_unknown"] != 2 {
		t.Errorf("the audit trail has %v", reasons)
	}
}

// TestPasskeyFlood shows that the numbers of rejected passkeys and open prompts are limited, with
// or without the password. Valid passkeys do not count.
func TestPasskeyFlood(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	key := b.passkey()
	w.limits.Set(limit.Rates{limit.LoginPerNetwork: limit.Of(3, 24*time.Hour),
		limit.AuthorizePerNetwork: limit.Of(12, 24*time.Hour)})

	// Valid passkeys do not count.
	for range 4 {
		b.show(key, "/dashboard/confirm", "/dashboard/confirm").leadsTo(t, "/dashboard")
	}

	// Rejected ones count, and the audit trail records only a few of them.
	form := url.Values{"form": {b.token("/dashboard/confirm")}, "prompt": {"none"}}
	for range 8 {
		b.sendKey("/dashboard/confirm", form, []byte("{}")).wrongKey(t, "an answer without a challenge")
	}
	found, err := w.rows.ListAudit(t.Context(), audit.Filter{Action: "login", Outcome: audit.Refused},
		page.Query{Size: 100})
	must(t, err)
	if len(found.Items) < 4 || len(found.Items) > 5 { // three refusals, and one for too many attempts
		t.Errorf("the trail has %d refusals, want 4 or 5", len(found.Items))
	}

	// Beyond the limit of prompts, login pages offer only the password.
	offered := 0
	for range 20 {
		if a := w.browser().get(doorway); strings.Contains(a.body, "data-options") {
			offered++
		} else if a.StatusCode != http.StatusOK || !strings.Contains(a.body, `id="password"`) {
			t.Fatalf("the page without a passkey: %s", a.Status)
		}
	}
	if offered != 12 {
		t.Errorf("%d pages asked for a passkey, want 12", offered)
	}
}

// TestEnrolByPasskey shows that a passkey satisfies the requirement for a second factor.
func TestEnrolByPasskey(t *testing.T) {
	w := newWorldThat(t, operator.Roles()...)
	_, b := w.operator("ann@example.com", ofAll)
	b.get("/dashboard/factor").leadsTo(t, "/dashboard/enrol")

	key := &factortest.Authenticator{Origin: w.named()}
	options, form := b.get("/dashboard/enrol").asked(t)
	wrong := *key
	wrong.Origin = "https://evil.example"
	b.sendKey("/dashboard/enrol", form, wrong.Create([]byte(options))).wrongKey(t, "a passkey of another site")
	b.get("/dashboard/account").leadsTo(t, "/dashboard/login?next=%2Fdashboard%2Faccount")

	options, form = b.get("/dashboard/enrol").asked(t)
	recovery := b.sendKey("/dashboard/enrol", form, key.Create([]byte(options))).find(
		t, `id="recovery-codes">\s*<li>([a-z2-7-]+)`)
	if a := b.get("/dashboard/account"); a.StatusCode != http.StatusOK {
		t.Errorf("after the set-up: %s, want 200", a.Status)
	}

	// The password alone is not enough to add a second passkey.
	other := w.browser()
	other.signIn("ann@example.com")
	other.get("/dashboard/enrol").leadsTo(t, "/dashboard/factor")
	if a := other.sendKey("/dashboard/enrol", url.Values{"form": {other.token("/dashboard/factor")}},
		key.Create([]byte(options))); a.Header.Get("Location") != "/dashboard/factor" {
		t.Errorf("a second passkey with the password alone: %s to %q", a.Status, a.Header.Get("Location"))
	}
	other.post("/dashboard/factor", "/dashboard/factor", url.Values{"code": {recovery}}).leadsTo(t, "/dashboard")
}

// TestFirstFactor shows that in a session that began before the second factor was set up, the
// factor must be used before anything else. The network from which that session signed in is not a
// known place.
func TestFirstFactor(t *testing.T) {
	for name, add := range map[string]func(browser){"app": func(b browser) { b.app() },
		"passkey": func(b browser) { b.passkey() }} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			o, b := w.operator("ann@example.com", ofAll)
			thief := w.browser()
			thief.signIn("ann@example.com")
			if a := thief.get("/dashboard/account/app"); a.StatusCode != http.StatusOK {
				t.Fatalf("before the set-up: %s, want 200", a.Status)
			}

			from := operator.Visitor{Network: "203.0.113.9"}
			_, _, err := w.operators.SignIn(t.Context(), o.Email, good, from, nil)
			must(t, err)
			if w.operators.ProvenPlace(t.Context(), o, from) {
				t.Error("a sign-in with a password alone makes its network known for two factors")
			}

			add(b)
			for _, path := range []string{"/dashboard/account", "/dashboard/account/app", addPage} {
				thief.get(path).leadsTo(t, "/dashboard/login?next="+url.QueryEscape(path))
			}
			thief.get("/dashboard/enrol").leadsTo(t, "/dashboard/factor")
			if a := b.get("/dashboard/account"); a.StatusCode != http.StatusOK {
				t.Errorf("the session that set up the factor: %s, want 200", a.Status)
			}
		})
	}
}

// TestRequiredByRole shows that a viewer needs no second factor if only owners and admins do. When
// the viewer becomes an admin, existing sessions require one.
func TestRequiredByRole(t *testing.T) {
	w := newWorldThat(t, operator.Owner, operator.Admin)
	role := operator.Membership{ProjectID: w.one.ID, Role: operator.Viewer}
	o, b := w.operator("vic@example.com", role)

	if a := b.get("/dashboard/account"); a.StatusCode != http.StatusOK {
		t.Fatalf("a viewer without a second factor: %s, want 200", a.Status)
	}

	role.Role = operator.Admin
	_, err := w.operators.Update(t.Context(), o.ID, operator.Input{Roles: []operator.Membership{role}}, "")
	must(t, err)
	b.get("/dashboard/account").leadsTo(t, "/dashboard/login?next=%2Fdashboard%2Faccount")

	// The session cannot be used for API requests either.
	r := b.request("GET", "/dashboard", nil)
	for _, c := range b.client.Jar.Cookies(r.URL) {
		r.AddCookie(c)
	}
	if _, err := w.api.Caller(r, w.one.ID); !errors.Is(err, problem.Unauthenticated) {
		t.Errorf("Caller for the session of an admin without a second factor = %v, want Unauthenticated",
			err)
	}

	// Once a second factor is set up, the session continues. A new session requires the factor.
	b.get("/dashboard/factor").leadsTo(t, "/dashboard/enrol")
	secret := b.get("/dashboard/enrol").secret(t)
	b.post("/dashboard/enrol", "/dashboard/enrol", url.Values{"code": {factortest.Code(secret, w.now())}})
	if a := b.get("/dashboard/account"); a.StatusCode != http.StatusOK {
		t.Errorf("with a second factor: %s, want 200", a.Status)
	}

	other := w.browser()
	other.signIn("vic@example.com")
	other.get("/dashboard/account").leadsTo(t, "/dashboard/login?next=%2Fdashboard%2Faccount")
}
