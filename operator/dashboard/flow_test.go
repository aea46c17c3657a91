package dashboard_test

import (
	"context"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/operator"
)

// leadsTo fails the test unless the answer redirects to path.
func (a answer) leadsTo(t testing.TB, path string) {
	t.Helper()
	if a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != path {
		t.Fatalf("%s %s: %s to %q, want a redirect to %s\n%s", a.Request.Method, a.Request.URL.Path, a.Status,
			a.Header.Get("Location"), path, a.body)
	}
}

// asksToConfirm fails the test unless the answer to a form keeps the form's input until the
// operator has confirmed their identity. In a browser with scripts, the answer must lead back to
// page.
func (a answer) asksToConfirm(t testing.TB, page string) {
	t.Helper()
	if a.StatusCode != http.StatusForbidden || !strings.Contains(a.body, `href="/dashboard/confirm" target="_blank" `+
		`data-return="/dashboard/confirm?next=`+url.QueryEscape(page)+`"`) {
		t.Fatalf("%s %s: %s, want a request to confirm that leads to %s\n%s", a.Request.Method, a.Request.URL.Path,
			a.Status, page, a.body)
	}
}

// find returns the first group that expression matches in the answer's body.
func (a answer) find(t testing.TB, expression string) string {
	t.Helper()
	m := regexp.MustCompile(expression).FindStringSubmatch(a.body)
	if m == nil {
		t.Fatalf("%s %s has no %s: %s\n%s", a.Request.Method, a.Request.URL.Path, expression, a.Status, a.body)
	}
	return html.UnescapeString(m[1])
}

// secret returns the secret that a page shows for an authenticator app.
func (a answer) secret(t testing.TB) string {
	t.Helper()
	return strings.ReplaceAll(a.find(t, `id="totp-secret">([A-Z2-7 ]+)<`), " ", "")
}

// TestSetupLink shows that the first operator joins through a link, and that the link works once.
func TestSetupLink(t *testing.T) {
	w := newWorldThat(t, operator.Roles()...)
	_, token, err := w.operators.First(t.Context())
	must(t, err)
	b, setup := w.browser(), "/dashboard/setup?token="+token
	for range 3 { // opening the link does not use it
		if a := b.get(setup); a.StatusCode != http.StatusOK {
			t.Fatalf("opening the link: %s, want 200", a.Status)
		}
	}

	weak := setupForm(token)
	weak.Set("password", "short")
	if a := b.post(setup, "/dashboard/setup", weak); a.StatusCode != http.StatusUnprocessableEntity ||
		!strings.Contains(a.body, `value="ann@example.com"`) {
		t.Errorf("a short password: %s, and the email is kept: %v, want 422 and true", a.Status,
			strings.Contains(a.body, "ann@example.com"))
	}

	weak.Set("password", "annabelle's own password")
	weak.Set("username", "annabelle@example.com")
	a := b.post(setup, "/dashboard/setup", weak)
	if !strings.Contains(between(a.body, `id="faults"`, "</div>"), ">Password is too easy to guess.</a>") ||
		!strings.Contains(between(a.body, `id="password-fault"`, "</p>"), "guess: it contains your email address.") ||
		!strings.Contains(between(a.body, `<input id="password"`, ">"), " autofocus") ||
		strings.Contains(between(a.body, `<input id="username"`, ">"), "autofocus") {
		t.Errorf("a weak password returned %s, without its reason or the focus on its field", a.Status)
	}

	// The link is used up, and no other page is accessible without a second factor.
	b.post(setup, "/dashboard/setup", setupForm(token)).leadsTo(t, "/dashboard/factor")
	if a := w.browser().get(setup); a.StatusCode != http.StatusNotFound {
		t.Errorf("opening the used link: %s, want 404", a.Status)
	}
	b.get("/dashboard").leadsTo(t, "/dashboard/login")
	b.get("/dashboard/factor").leadsTo(t, "/dashboard/enrol")
}

func setupForm(token string) url.Values {
	return url.Values{"token": {token}, "username": {"ann@example.com"}, "name": {"Ann"}, "password": {good}}
}

// enrolled sets up the first operator with an authenticator app. It returns the operator's browser,
// a function that returns the app's current code, and a recovery code.
func enrolled(t *testing.T, w *world) (b browser, code func() string, recovery string) {
	t.Helper()
	_, token, err := w.operators.First(t.Context())
	must(t, err)
	b = w.browser()
	b.post("/dashboard/setup?token="+token, "/dashboard/setup", setupForm(token)).leadsTo(t, "/dashboard/factor")

	before := b.cookie()
	secret := b.get("/dashboard/enrol").secret(t)
	wrong := b.post("/dashboard/enrol", "/dashboard/enrol", url.Values{"code": {"000000"}})
	if wrong.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("setting up with a wrong code: %s, want 422", wrong.Status)
	}
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
	b, code, _ := enrolled(t, w)
	b.get("/dashboard").leadsTo(t, "/dashboard/projects/"+w.one.ID)
	b.post("/dashboard/account", "/dashboard/logout", url.Values{}).leadsTo(t, "/dashboard/login")
	b.get("/dashboard/account").leadsTo(t, "/dashboard/login?next=%2Fdashboard%2Faccount")

	in := url.Values{"username": {"ANN@example.com"}, "password": {good}, "next": {"/dashboard/account"}}
	b.post("/dashboard/login", "/dashboard/login", in).leadsTo(t, "/dashboard/factor?next=%2Fdashboard%2Faccount")
	b.get("/dashboard/account").leadsTo(t, "/dashboard/login?next=%2Fdashboard%2Faccount")
	b.get("/dashboard/enrol").leadsTo(t, "/dashboard/factor")
	w.pass(time.Minute)
	b.post("/dashboard/factor", "/dashboard/factor",
		url.Values{"code": {code()}, "next": {"/dashboard/account"}}).leadsTo(t, "/dashboard/account")
	if a := b.get("/dashboard/account"); !strings.Contains(a.body, "Authenticator app") ||
		!strings.Contains(a.body, "10 codes are left.") {
		t.Errorf("the account page: %s %s", a.Status, a.body)
	}
}

// TestRecoveryCode shows that an operator's recovery code works once.
func TestRecoveryCode(t *testing.T) {
	w := newWorldThat(t, operator.Roles()...)
	_, _, recovery := enrolled(t, w)
	in := url.Values{"username": {"ann@example.com"}, "password": {good}}
	first, second := w.browser(), w.browser()
	first.post("/dashboard/login", "/dashboard/login", in)
	first.post("/dashboard/factor", "/dashboard/factor", url.Values{"code": {recovery}}).leadsTo(t, "/dashboard")

	second.post("/dashboard/login", "/dashboard/login", in)
	if a := second.post("/dashboard/factor", "/dashboard/factor",
		url.Values{"code": {recovery}}); a.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("using the recovery code again: %s, want 422", a.Status)
	}
}

// cookie returns the session cookie, or "".
func (b browser) cookie() string {
	u, _ := url.Parse(b.url) // always valid: the URL of a test server
	for _, c := range b.c.Jar.Cookies(u) {
		if strings.HasSuffix(c.Name, "selvage-operator") {
			return c.Value
		}
	}
	return ""
}

// TestKeys shows that an operator can create an API key, see its secret once, rotate the key and
// revoke it.
func TestKeys(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	base := "/dashboard/projects/" + w.one.ID + "/keys"

	if a := b.post(base+"/new", base, url.Values{"name": {"back"}}); a.StatusCode != http.StatusUnprocessableEntity ||
		!strings.Contains(a.body, `value="back"`) {
		t.Errorf("creating a key without scopes: %s, want 422 and the typed name", a.Status)
	}

	if page := b.get(base + "/new").body; !strings.Contains(page, `value="Management"`) ||
		strings.Contains(page, `value="Datasphere"`) {
		t.Error("the form does not offer exactly the scopes that have an effect")
	}

	created := b.post(base+"/new", base, url.Values{"name": {"back"}, "scope": {"Voice", "Video"}, "expires": {"30d"}})
	secret := created.find(t, `id="secret"><span class="copy"><code>(PT[0-9a-f]{64})<`)
	k, err := w.fabric.APIKeys.Authenticate(context.Background(), w.one.ID, secret)
	if err != nil || len(k.Scopes) != 2 || k.Expires.IsZero() {
		t.Fatalf("the new key is %+v, %v", k, err)
	}

	page := base + "/" + k.ID
	if a := b.get(page); strings.Contains(a.body, secret) || !strings.Contains(a.body, secret[:8]) {
		t.Error("the key's page shows the secret again, or does not show its prefix")
	}

	next := b.post(page, page+"/rotate", url.Values{"overlap": {"now"}}).find(t, `<code>(PT[0-9a-f]{64})<`)
	if _, err := w.fabric.APIKeys.Authenticate(context.Background(), w.one.ID, secret); err == nil {
		t.Error("the old secret is accepted after a rotation without overlap")
	}

	next = endOldSecret(t, w, b, page, next)
	if a := b.post(page, page+"/revoke",
		url.Values{"confirm": {"other"}}); a.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("revoking a key with a wrong name: %s, want 422", a.Status)
	}
	b.post(page, page+"/revoke", url.Values{"confirm": {"back"}}).leadsTo(t, base+"?done=revoked")
	if _, err := w.fabric.APIKeys.Authenticate(context.Background(), w.one.ID, next); err == nil {
		t.Error("a revoked key is accepted")
	}

	// Changing, creating and revoking keys needs a recent confirmation.
	w.pass(operator.Freshness)
	name := "second"
	k, _, err = w.fabric.APIKeys.Create(context.Background(), w.one.ID,
		fabric.APIKeyInput{Name: &name, Scopes: []fabric.Scope{fabric.Voice}}, nil)
	must(t, err)

	page = base + "/" + k.ID
	confirm := "/dashboard/confirm?next=" + url.QueryEscape(page)
	b.post(page, page+"/rotate", url.Values{"overlap": {"now"}}).asksToConfirm(t, page)
	for _, of := range []string{base, "/dashboard/projects/" + w.one.ID + "/clients"} {
		b.get(of+"/new").leadsTo(t, "/dashboard/confirm?next="+url.QueryEscape(of+"/new"))
		b.post(page, of, url.Values{"name": {"third"}, "scope": {"Voice"}}).asksToConfirm(t, page)
	}

	before := b.cookie()
	if a := b.post(confirm, "/dashboard/confirm",
		url.Values{"password": {"wrong"}}); a.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("confirming with a wrong password: %s, want 422", a.Status)
	}
	b.post(confirm, "/dashboard/confirm", url.Values{"password": {good}, "next": {page}}).leadsTo(t, page)
	if b.cookie() == before {
		t.Error("confirming the password does not change the cookie")
	}
	b.post(page, page+"/rotate", url.Values{"overlap": {"day"}}).find(t, `<code>(PT[0-9a-f]{64})<`)
}

// endOldSecret rotates a key, ends the old secret, and returns the new one. It checks that the page
// keeps showing the new secret.
func endOldSecret(t *testing.T, w *world, b browser, page, old string) string {
	t.Helper()
	shown := b.post(page, page+"/rotate", url.Values{"overlap": {"day"}})
	present := shown.find(t, shownSecret)
	end, revoke := strings.Index(shown.body, `id="end-old"`), strings.Index(shown.body, `id="revoke"`)
	if end < 0 || revoke < end || !strings.Contains(shown.body, `id="rotate"`) {
		t.Error("after a rotation, the page does not offer to end the old secret first")
	}

	kept := url.Values{"secret": {present}}
	if a := b.post(page, page+"/old-secret", kept); a.find(t, shownSecret) != present ||
		strings.Contains(a.body, `id="end-old"`) {
		t.Error("after the end of the old secret the page does not show the only secret")
	}

	if _, err := w.fabric.APIKeys.Authenticate(t.Context(), w.one.ID, old); err == nil {
		t.Error("the old secret is accepted after its end")
	}
	if _, err := w.fabric.APIKeys.Authenticate(t.Context(), w.one.ID, present); err != nil {
		t.Errorf("the new secret is refused after the end of the old one: %v", err)
	}
	a := b.post(page, page+"/old-secret", url.Values{"secret": {old}})
	if a.StatusCode != http.StatusUnprocessableEntity || strings.Contains(a.body, old) {
		t.Errorf("ending the old secret twice: %s, want 422 without the secret", a.Status)
	}
	return present
}

// TestAudit shows that the audit trail explains a failed login to operators of the project.
func TestAudit(t *testing.T) {
	w := newWorld(t)
	o, b := w.operator("ann@example.com", ofAll)
	w.browser().post("/dashboard/login", "/dashboard/login",
		url.Values{"username": {"ann@example.com"}, "password": {"wrong"}})

	earlier := audit.Of("login", "", "operator", o.ID).Refuse("wrong e-mail or password") // by earlier versions
	must(t, w.rows.Record(t.Context(), earlier))

	a := b.get("/dashboard/audit?action=login&outcome=refused")
	if n := strings.Count(a.body, "An owner can create a link for a new password"); n != 2 {
		t.Errorf("the audit trail explains %d of two refused logins: %s", n, a.body)
	}
	if !strings.Contains(a.body, "Sign-in refused") ||
		!strings.Contains(a.body, "wrong email or password") || !strings.Contains(a.body, o.ID) ||
		strings.Contains(a.body, "Done</span>") {
		t.Errorf("the audit trail does not explain the refused logins: %s %s", a.Status, a.body)
	}

	base := "/dashboard/projects/" + w.one.ID
	b.post(base+"/keys/new", base+"/keys", url.Values{"name": {"back"}, "scope": {"Voice"}})
	named := `<a href="/dashboard/operators/` + o.ID + `" title="` + o.ID + `"><bdi>ann@example.com</bdi></a> ` +
		`<span class="quiet">Operator</span>`
	if a := b.get(base + "/audit"); !strings.Contains(a.body, named) {
		t.Errorf("the project's audit trail does not name the operator: %s", a.body)
	}

	if a := b.get(base + "/audit?after=soon"); a.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("a filter by an invalid day: %s, want 422", a.Status)
	}
}

// TestInert shows that untrusted text is escaped wherever it is shown (threats D01, D05).
func TestInert(t *testing.T) {
	w := newWorld(t)

	// Put the text into every field that an outsider can write.
	const evil = `"><img src=x onerror=alert(1)></title><script>alert(2)</script>{{7}}`
	ctx, name, mail := context.Background(), evil, "ada@example.com"
	_, err := w.fabric.Projects.Update(ctx, w.one.ID, fabric.ProjectChange{Name: &name})
	must(t, err)

	k, _, err := w.fabric.APIKeys.Create(ctx, w.one.ID,
		fabric.APIKeyInput{Name: &name, Scopes: []fabric.Scope{fabric.Voice}}, nil)
	must(t, err)

	s, err := w.fabric.Subscribers.Create(
		ctx, w.one.ID, fabric.SubscriberInput{Email: &mail, Profile: fabric.Profile{JobTitle: &name}})
	must(t, err)

	r := w.record(w.one.ID, evil)
	secret := good
	o, err := w.operators.Create(ctx, operator.Input{Email: &mail, Name: &name, Password: &secret,
		Roles: []operator.Membership{ofAll}})
	must(t, err)

	b := w.browser()
	b.signIn(mail)
	base := "/dashboard/projects/" + w.one.ID
	for _, path := range []string{
		"/dashboard/projects", "/dashboard/operators", "/dashboard/operators/" + o.ID, "/dashboard/account",
		base, base + "/keys", base + "/keys/" + k.ID,
		base + "/subscribers?email=" + url.QueryEscape(evil), base + "/subscribers/" + s.ID,
		base + "/recordings?call=" + url.QueryEscape(evil), base + "/recordings/" + r.Sid,
		base + "/resources?kind=" + url.QueryEscape(evil), base + "/addresses?name=" + url.QueryEscape(evil),
		base + "/keys?done=" + url.QueryEscape(evil),
		base + "/audit?action=" + url.QueryEscape(evil), base + "/audit",
		"/dashboard/audit?actor=" + url.QueryEscape(evil),
		"/dashboard/login?next=javascript:alert(1)", "/dashboard/setup?token=" + url.QueryEscape(evil),
	} {
		a := b.get(path)
		if strings.Contains(a.body, "<img src=x") || strings.Contains(a.body, "<script>alert") ||
			strings.Contains(a.body, "javascript:") {
			t.Errorf("%s contains the text unescaped", path)
		}

		policy := a.Header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self';", "frame-ancestors 'none'",
			"base-uri 'none'"} {
			if a.StatusCode == http.StatusOK && !strings.Contains(policy, want) {
				t.Errorf("%s has the policy %q, want %s in it", path, policy, want)
			}
		}
		if a.StatusCode == http.StatusOK && (a.Header.Get("Cache-Control") != "no-store" ||
			a.Header.Get("Cross-Origin-Opener-Policy") != "same-origin" ||
			a.Header.Get("X-Content-Type-Options") != "nosniff") {
			t.Errorf("%s lacks a security header: %v", path, a.Header)
		}
	}
}

// TestNext shows that the dashboard never redirects to another site.
func TestNext(t *testing.T) {
	w := newWorld(t)
	w.operator("ann@example.com", ofAll)
	for _, next := range []string{"https://evil.example/", "//evil.example", "/\\evil.example", "/login",
		"/dashboardx", "javascript:alert(1)", "/dashboard/\r\nX: y"} {
		b := w.browser()
		b.post("/dashboard/login", "/dashboard/login",
			url.Values{"username": {"ann@example.com"}, "password": {good}, "next": {next}}).leadsTo(t, "/dashboard")
	}
}

// TestTries shows that the number of password attempts from one network is limited, and that an
// unknown account gets the same response.
func TestTries(t *testing.T) {
	w := newWorld(t)
	w.operator("ann@example.com", ofAll)

	for _, email := range []string{"ann@example.com", "nobody@example.com"} {
		b := w.browser()
		var got []int
		for range 6 {
			got = append(got, b.post("/dashboard/login", "/dashboard/login",
				url.Values{"username": {strings.ToUpper(email)}, "password": {"wrong"}}).StatusCode)
		}

		want := []int{422, 422, 422, 422, 429, 429}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("attempts as %s: %v, want %v", email, got, want)
				break
			}
		}
	}
}
