package oidc_test

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/factor/factortest"
)

var secretOfPage = regexp.MustCompile(`id="totp-secret">([A-Z2-7 ]+)<`)

// TestEnrolDuringLogin shows that subscribers who lack a required second factor set one up during
// the login.
func TestEnrolDuringLogin(t *testing.T) {
	for name, need := range map[string]func(*world, *idp.Client) []string{
		"required by the project": func(w *world, _ *idp.Client) []string {
			yes := true
			_, err := w.fabric.Projects.Update(context.Background(), w.project.ID,
				fabric.ProjectChange{RequireFactor: &yes})
			must(w.t, err)
			return nil
		},
		"required by the client":  func(_ *world, c *idp.Client) []string { c.RequireACR = "2"; return nil },
		"required by the request": func(*world, *idp.Client) []string { return []string{"acr_values", "2"} },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var pairs []string
			c, _ := w.client(func(c *idp.Client) { pairs = need(w, c) })
			b := w.browser()
			page := b.logIn(b.authorize(request(c, pairs...)), email, secret)

			// The login continues with the setup.
			m := secretOfPage.FindStringSubmatch(page.body)
			if m == nil || !strings.Contains(page.body, "Set up a second factor") {
				t.Fatalf("no set-up page: %d %s", page.status, page.body)
			}

			// The setup cannot be skipped.
			id := hiddenID.FindStringSubmatch(page.body)[1]
			for _, past := range []reply{b.post("/login/continue", url.Values{"id": {id}}),
				b.post("/consent", url.Values{"id": {id}, "answer": {"allow"}})} {
				if past.param("code") != "" {
					t.Errorf("skipping the set-up: %d %v, want no code", past.status, past.parameters())
				}
			}

			if got := b.form(page, "/login/enrol", "code",
				"000000"); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, m[1]) {
				t.Errorf("a wrong code: %d %s, want 422 with the same secret", got.status, got.body)
			}
			codes := b.form(page, "/login/enrol", "code", factortest.Code(strings.ReplaceAll(m[1], " ", ""), w.now()))
			if !strings.Contains(codes.body, `id="recovery-codes"`) {
				t.Fatalf("no recovery codes: %d %s", codes.status, codes.body)
			}

			acr, amr := w.proven(c, b.form(codes, "/login/continue"))
			wantProven(t, name, acr, amr, "pwd", "otp", "mfa")
		})
	}
}

// TestAccountFactors shows that people can add passkeys and apps on their account page.
func TestAccountFactors(t *testing.T) {
	w := newWorld(t)
	b := w.browser()
	page := b.account()

	d := &factortest.Authenticator{Origin: strings.Replace(w.url, "127.0.0.1", "localhost", 1), Synced: true}
	got := b.onPage(page, "/account/passkeys", "credential", string(d.Create(page.options(t))), "name", "Phone <b>")
	if !strings.Contains(got.body, `id="recovery-codes"`) {
		t.Fatalf("adding a passkey: %d %s, want recovery codes", got.status, got.body)
	}
	if page = b.account(); !strings.Contains(page.body, "Phone &lt;b&gt;") ||
		!strings.Contains(page.body, "synced across devices") || !strings.Contains(page.body, "10 codes are left") {
		t.Errorf("the account page does not show the passkey: %s", page.body)
	}

	app := b.onPage(page, "/account/app")
	m := secretOfPage.FindStringSubmatch(app.body)
	if m == nil {
		t.Fatalf("the page offers no app to set up: %d %s", app.status, app.body)
	}
	got = b.onPage(app, "/account/app/confirm", "code", factortest.Code(strings.ReplaceAll(m[1], " ", ""), w.now()))
	if !strings.Contains(got.body, "Your authenticator app is set up.") {
		t.Errorf("setting up an app: %d %s, want a notice", got.status, got.body)
	}

	if got := b.onPage(page, "/account/codes"); !strings.Contains(got.body, `id="recovery-codes"`) {
		t.Errorf("new codes: %d %s, want recovery codes", got.status, got.body)
	}

	// An old login may no longer change any of this. The person must sign in again first.
	w.pass(11 * time.Minute)
	page = b.get("/account")
	for _, path := range []string{"/account/app", "/account/codes", "/account/passkeys",
		"/account/factors/remove", "/account/password"} {
		if got := b.onPage(page, path, "factor", w.appID()); !strings.Contains(got.body, `id="password"`) {
			t.Errorf("%s by an old login: %d %s, want the login page", path, got.status, got.body)
		}
	}
	if w.appID() == "" {
		t.Error("an old login removed the app")
	}
}

// TestFactorGuardsFactors shows what a login with only a password may do if it is older than the
// subscriber's second factor. It may no longer manage factors. The login that set the factor up
// still may.
func TestFactorGuardsFactors(t *testing.T) {
	w := newWorld(t)
	old, own := w.browser(), w.browser()

	stale := old.account()
	page := own.account()
	d := &factortest.Authenticator{Origin: strings.Replace(w.url, "127.0.0.1", "localhost", 1)}
	theirs := &factortest.Authenticator{Origin: d.Origin}
	answer := theirs.Create(stale.options(t)) // begun before the subscriber had a factor
	own.onPage(page, "/account/passkeys", "credential", string(d.Create(page.options(t))), "name", "Phone")

	all, err := w.idp.Factors.List(t.Context(), idp.OwnerOf(w.ada.ID))
	must(t, err)
	for _, pairs := range [][]string{
		{"/account/passkeys", "credential", string(answer)}, {"/account/factors/remove", "factor", all[0].ID},
		{"/account/app"}, {"/account/codes"},
		{"/account/password", "current", secret, "password", secret + " more"},
		{"/account/email", "email", "mallory@example.com"},
	} {
		if got := old.onPage(stale, pairs[0], pairs[1:]...); !strings.Contains(got.body, `id="login-submit"`) {
			t.Errorf("%s by an earlier login: %d %s, want the login page", pairs[0], got.status, got.body)
		}
	}

	// The old login cannot add factors and has changed nothing.
	if got := old.get("/account?project=" + w.project.ID); strings.Contains(got.body, "data-options") {
		t.Error("an earlier login is offered a form that adds a passkey")
	}
	after, err := w.idp.Factors.List(t.Context(), idp.OwnerOf(w.ada.ID))
	must(t, err)
	if len(after) != len(all) || after[0].ID != all[0].ID {
		t.Errorf("the factors were %v and are now %v", all, after)
	}

	if got := own.onPage(own.account(), "/account/codes"); !strings.Contains(got.body, `id="recovery-codes"`) {
		t.Errorf("the login that set up the factor: %d %s, want recovery codes", got.status, got.body)
	}
}
