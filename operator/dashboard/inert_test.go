package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/operator"
)

// TestInert shows that untrusted text is escaped wherever it is shown (threats D01, D05).
func TestInert(t *testing.T) {
	w := newWorld(t)

	// Put the text into names, a profile and the call of a recording.
	const evil = `"><img src=x onerror=alert(1)></title><script>alert(2)</script>{{7}}`
	ctx, name, email := t.Context(), evil, "ada@example.com"
	_, err := w.fabric.Projects.Update(ctx, w.one.ID, fabric.ProjectChange{Name: &name})
	must(t, err)

	k, _, err := w.fabric.APIKeys.Create(ctx, w.one.ID,
		fabric.APIKeyInput{Name: &name, Scopes: []fabric.Scope{fabric.Voice}}, nil)
	must(t, err)

	s, err := w.fabric.Subscribers.Create(
		ctx, w.one.ID, fabric.SubscriberInput{Email: &email, Profile: fabric.Profile{JobTitle: &name}})
	must(t, err)

	r := w.record(w.one.ID, evil)
	secret := good
	o, err := w.operators.Create(ctx,
		operator.Input{Email: &email, Name: &name, Password: &secret, Roles: []operator.Membership{ofAll}})
	must(t, err)

	// No page contains the text as markup.
	b := w.browser()
	b.signIn(email)
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
		a.wantNoText(t, "<img src=x", "<script>alert", "javascript:")
		if a.StatusCode == http.StatusOK {
			wantSecurityHeaders(t, a)
		}
	}
}

// wantSecurityHeaders reports each security header that a page lacks.
func wantSecurityHeaders(t *testing.T, a answer) {
	t.Helper()
	policy := a.Header.Get("Content-Security-Policy")
	for _, want := range []string{
		"default-src 'none'", "script-src 'self';", "frame-ancestors 'none'", "base-uri 'none'",
	} {
		if !strings.Contains(policy, want) {
			t.Errorf("%s with the policy %q, want it to contain %s", a, policy, want)
		}
	}
	a.wantHeader(t, "Cache-Control", "no-store")
	a.wantHeader(t, "Cross-Origin-Opener-Policy", "same-origin")
	a.wantHeader(t, "X-Content-Type-Options", "nosniff")
}
