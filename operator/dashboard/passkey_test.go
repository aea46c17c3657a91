package dashboard_test

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/factor/factortest"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/operator"
)

// doorway is the sign-in page, and addPage is the page that adds a passkey.
const doorway, addPage = "/dashboard/login", "/dashboard/account/passkey"

// asked returns the options of the passkey prompt on a page, and the form for its answer.
func (a answer) asked(t testing.TB) (options string, form url.Values) {
	t.Helper()
	options = a.find(t, `data-options="([^"]+)"`)
	return options, url.Values{
		"form":   {a.find(t, `name="form" value="([^"]+)"`)},
		"prompt": {a.find(t, `name="prompt" value="([^"]+)"`)},
	}
}

// sendKey posts an authenticator's answer to a page.
func (b browser) sendKey(path string, form url.Values, credential []byte) answer {
	b.Helper()
	form.Set("credential", string(credential))
	return b.send(b.request("POST", path, form))
}

// passkey adds a passkey to the account of the signed-in operator.
func (b browser) passkey() *factortest.Authenticator {
	b.Helper()
	key := &factortest.Authenticator{Origin: b.named()}
	options, form := b.get(addPage).asked(b.TB)
	form.Set("name", "Laptop")
	added := b.sendKey(addPage, form, key.Create([]byte(options)))
	if added.StatusCode >= http.StatusBadRequest {
		b.Fatalf("%s, want a new passkey\n%s", added, added.body)
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
func (a answer) wrongKey(t testing.TB) {
	t.Helper()
	a.wantRefused(t, `id="passkey-error"`)
}

// TestPasskeyOfOperator shows that a passkey signs an operator in by itself, serves as a second
// factor after the password, and confirms the identity.
func TestPasskeyOfOperator(t *testing.T) {
	w := newWorld(t)
	o, b := w.operator("ann@example.com", ofAll)
	key := b.passkey()
	b.get("/dashboard/account").wantText(t, "<strong>Laptop</strong>", "10 codes are left.")

	// The passkey alone signs in, and counts as two factors.
	w.browser().show(key, doorway, "/dashboard/login/passkey", "next", "/dashboard/account").
		leadsTo(t, "/dashboard/account")
	sessions, err := w.operators.Sessions(t.Context(), o.ID)
	must(t, err)
	var factors []string
	for _, s := range sessions { // newest first
		factors = append(factors, strings.Join(s.AMR, " "))
	}
	if want := []string{"hwk user pop mfa", "pwd hwk user pop mfa"}; !slices.Equal(factors, want) {
		t.Errorf("the sessions have the factors %q, want %q", factors, want)
	}

	// The passkey is the second factor after the password, and the session gets a new cookie.
	in := url.Values{"username": {"ann@example.com"}, "password": {good}}
	second := w.browser()
	second.post(doorway, doorway, in).leadsTo(t, "/dashboard/factor")
	second.get("/dashboard/account").leadsTo(t, "/dashboard/login?next=%2Fdashboard%2Faccount")
	before := second.cookie()
	second.show(key, "/dashboard/factor", "/dashboard/factor").leadsTo(t, "/dashboard")
	if second.cookie() == before {
		t.Error("presenting the second factor does not change the cookie")
	}

	// The passkey confirms the identity.
	w.pass(operator.Freshness)
	confirm := "/dashboard/confirm?next=" + url.QueryEscape(addPage)
	second.get(addPage).leadsTo(t, confirm)
	second.show(key, confirm, "/dashboard/confirm", "next", addPage).leadsTo(t, addPage)
	second.get(addPage).wantStatus(t, http.StatusOK)

	// If there is also an authenticator app, either can be used.
	code, _ := second.app()
	third := w.browser()
	third.post(doorway, doorway, in)
	third.get("/dashboard/factor").wantText(t, "or use a passkey", `id="code"`)
	w.pass(time.Minute)
	third.post("/dashboard/factor", "/dashboard/factor", url.Values{"code": {code()}}).leadsTo(t, "/dashboard")

	// The passkey can be renamed and removed.
	const account = "/dashboard/account"
	id := third.get(account).find(t, `passkeys/rename" class="line"><input type="hidden" name="form" `+
		`value="[^"]+"><input type="hidden" name="factor" value="([^"]+)"`)
	renamed := third.post(account, account+"/passkeys/rename", url.Values{"factor": {id}, "name": {"Desk"}})
	renamed.leadsTo(t, account+"?done=changed")
	removed := third.post(account, account+"/factors/remove", url.Values{"factor": {id}})
	removed.leadsTo(t, account+"?done=factor")
	w.browser().show(key, doorway, "/dashboard/login/passkey").wrongKey(t)
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
	b.sendKey("/dashboard/enrol", form, wrong.Create([]byte(options))).wrongKey(t)
	b.get("/dashboard/account").leadsTo(t, "/dashboard/login?next=%2Fdashboard%2Faccount")

	options, form = b.get("/dashboard/enrol").asked(t)
	done := b.sendKey("/dashboard/enrol", form, key.Create([]byte(options)))
	recovery := done.find(t, `id="recovery-codes">\s*<li>([a-z2-7-]+)`)
	b.get("/dashboard/account").wantStatus(t, http.StatusOK)

	// The password alone is not enough to add a second passkey.
	other := w.browser()
	other.signIn("ann@example.com")
	other.get("/dashboard/enrol").leadsTo(t, "/dashboard/factor")
	form = url.Values{"form": {other.token("/dashboard/factor")}}
	refused := other.sendKey("/dashboard/enrol", form, key.Create([]byte(options)))
	refused.wantHeader(t, "Location", "/dashboard/factor")
	other.post("/dashboard/factor", "/dashboard/factor", url.Values{"code": {recovery}}).leadsTo(t, "/dashboard")
}

// TestFirstFactor shows that a session that began before the second factor was set up needs the factor
// before anything else. After a sign-in with a password alone, its network is not a proven place.
func TestFirstFactor(t *testing.T) {
	for name, add := range map[string]func(browser){
		"app":     func(b browser) { b.app() },
		"passkey": func(b browser) { b.passkey() },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			o, b := w.operator("ann@example.com", ofAll)
			thief := w.browser()
			thief.signIn("ann@example.com")
			thief.get("/dashboard/account/app").wantStatus(t, http.StatusOK)

			from := operator.Visitor{Network: "203.0.113.9"}
			_, _, err := w.operators.SignIn(t.Context(), o.Email, good, from, nil)
			must(t, err)
			if w.operators.ProvenPlace(t.Context(), o, from) {
				t.Error("after a sign-in with a password alone, its network is a proven place")
			}

			add(b)
			for _, path := range []string{"/dashboard/account", "/dashboard/account/app", addPage} {
				thief.get(path).leadsTo(t, "/dashboard/login?next="+url.QueryEscape(path))
			}
			thief.get("/dashboard/enrol").leadsTo(t, "/dashboard/factor")
			b.get("/dashboard/account").wantStatus(t, http.StatusOK)
		})
	}
}

// TestRequiredByRole shows that a viewer needs no second factor if only owners and admins do. When
// the viewer becomes an admin, existing sessions require one.
func TestRequiredByRole(t *testing.T) {
	w := newWorldThat(t, operator.Owner, operator.Admin)
	role := operator.Membership{ProjectID: w.one.ID, Role: operator.Viewer}
	o, b := w.operator("vic@example.com", role)

	b.get("/dashboard/account").wantStatus(t, http.StatusOK)

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
		t.Errorf("Caller for an admin without a second factor = %v, want Unauthenticated", err)
	}

	// Once a second factor is set up, the session continues. A new session requires the factor.
	b.get("/dashboard/factor").leadsTo(t, "/dashboard/enrol")
	secret := b.get("/dashboard/enrol").secret(t)
	b.post("/dashboard/enrol", "/dashboard/enrol", url.Values{"code": {factortest.Code(secret, w.now())}})
	b.get("/dashboard/account").wantStatus(t, http.StatusOK)

	other := w.browser()
	other.signIn("vic@example.com")
	other.get("/dashboard/account").leadsTo(t, "/dashboard/login?next=%2Fdashboard%2Faccount")
}
