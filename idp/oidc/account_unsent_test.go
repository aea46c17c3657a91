package oidc_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// fromPage posts a form as browsers do, which say that a page of the same origin sent it.
func (b *browser) fromPage(path string, form url.Values) reply {
	b.w.t.Helper()
	req, err := http.NewRequest(http.MethodPost, b.w.url+path, strings.NewReader(form.Encode()))
	must(b.w.t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	return b.do(req)
}

// endLogins ends all logins of ada.
func (w *world) endLogins() {
	w.t.Helper()
	all, err := w.idp.Logins.List(w.t.Context(), w.project.ID, w.ada.ID)
	must(w.t, err)
	for _, l := range all {
		must(w.t, w.idp.Logins.End(w.t.Context(), l.ID))
	}
}

// TestUnsentAccountForm shows that a browser without scripts keeps a form of the account page that was
// sent after the login ended, and can send it after the next login.
func TestUnsentAccountForm(t *testing.T) {
	w := newWorld(t)
	b := w.browser()
	const path = "/account/profile"
	typed := with(formOf(t, b.account(), path), "first_name", `Augusta "<i>"`, "last_name", "King")
	kept := func(got reply, title string) url.Values {
		t.Helper()
		if got.status != http.StatusForbidden || !strings.Contains(got.body, title) {
			t.Fatalf("%d %s, want the page %s", got.status, got.body, title)
		}
		return formOf(t, got, path)
	}
	name := func() string {
		t.Helper()
		sub, err := w.fabric.Subscribers.Find(t.Context(), w.project.ID, w.ada.ID)
		must(t, err)
		return sub.FirstName
	}

	w.endLogins()
	over := b.fromPage(path, typed)
	form := kept(over, "Your session has ended")
	if to := `data-return="/account?project=` + w.project.ID + `"`; !strings.Contains(over.body, to) {
		t.Errorf("the page has no %s: %s", to, over.body)
	}
	form = kept(b.fromPage(path, form), "Your session has ended")

	b.account()
	asked := b.fromPage(path, form)
	form = kept(asked, "Send the form now?")
	if !strings.Contains(asked.body, "The form changes the account "+w.ada.Title()) || name() != "Ada" {
		t.Errorf("the form from another login has set the name %q, want Ada and a page that names the account: %s",
			name(), asked.body)
	}
	if got := b.fromPage(path, form); !strings.Contains(got.body, "Your profile is saved.") ||
		name() != `Augusta "<i>"` {
		t.Errorf("after the confirmation the name is %q: %d %s, want the typed one", name(), got.status, got.body)
	}
}

// TestUnconfirmedAccountForm shows that a browser without scripts keeps a form that needs a recent
// login, and can send it after one.
func TestUnconfirmedAccountForm(t *testing.T) {
	w := newWorld(t)
	b := w.browser()
	const path = "/account/email"
	typed := with(formOf(t, b.account(), path), "email", "new@example.com")
	w.pass(11 * time.Minute)
	page := b.fromPage(path, typed)
	again := "/account?project=" + w.project.ID + "&again"
	if page.status != http.StatusForbidden ||
		!strings.Contains(page.body, `href="`+strings.Replace(again, "&", "&amp;", 1)+`"`) {
		t.Fatalf("by an old login: %d %s, want 403 with a link to sign in again", page.status, page.body)
	}

	b.logIn(b.get(again), email, secret)
	page = b.fromPage(path, formOf(t, page, path))
	if !strings.Contains(page.body, "Send the form now?") { // another login has another token
		t.Fatalf("the form of the earlier login: %d %s, want a question", page.status, page.body)
	}
	page = b.fromPage(path, formOf(t, page, path))
	if !strings.Contains(page.body, "We sent a link") {
		t.Errorf("after a login: %d %s, want the notice", page.status, page.body)
	}
	if got := b.get(again); !strings.Contains(got.body, `id="account-page"`) {
		t.Errorf("a recent login must sign in again: %d %s", got.status, got.body)
	}
}

// TestUnsentSecrets shows that no page keeps a form of the account page with a secret, or one that may
// come from another site.
func TestUnsentSecrets(t *testing.T) {
	w := newWorld(t)
	b := w.browser()
	const canary = "canary-6f1d"
	for path, pairs := range map[string][]string{
		"/account/password":    {"name", "x", "current", canary},
		"/account/passkeys":    {"name", "x", "credential", canary},
		"/account/app/confirm": {"name", "x", "code", canary},
	} {
		got := b.fromPage(path, with(url.Values{"project": {w.project.ID}}, pairs...))
		if strings.Contains(got.body, canary) || !strings.Contains(got.body, `id="login-submit"`) {
			t.Errorf("%s: %d %s, want the login page", path, got.status, got.body)
		}
	}
	got := b.post("/account/profile", url.Values{"project": {w.project.ID}, "first_name": {canary}})
	if strings.Contains(got.body, canary) || !strings.Contains(got.body, `id="login-submit"`) {
		t.Errorf("a form of unknown origin: %d %s, want the login page", got.status, got.body)
	}
}
