package oidc_test

import (
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// fromPage posts a form with a header that says that a page of the same origin sent it, as browsers do.
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
	logins, err := w.idp.Logins.List(w.t.Context(), w.project.ID, w.ada.ID)
	must(w.t, err)
	for _, login := range logins {
		must(w.t, w.idp.Logins.End(w.t.Context(), login.ID))
	}
}

// TestUnsentAccountForm shows that a browser without scripts keeps a form of the account page that
// was sent after the login ended. It can send the form after the next login.
func TestUnsentAccountForm(t *testing.T) {
	w := newWorld(t)
	b := w.newBrowser()
	const path = "/account/profile"
	typed := with(formOf(t, b.account(), path), "first_name", `Augusta "<i>"`, "last_name", "King")
	wantKept := func(got reply, title string) url.Values {
		t.Helper()
		wantStatus(t, title, got, http.StatusForbidden)
		wantText(t, title, got, title)
		return formOf(t, got, path)
	}
	wantName := func(want string) {
		t.Helper()
		sub, err := w.fabric.Subscribers.Find(t.Context(), w.project.ID, w.ada.ID)
		must(t, err)
		if sub.FirstName != want {
			t.Errorf("the name is %q, want %q", sub.FirstName, want)
		}
	}

	w.endLogins()
	over := b.fromPage(path, typed)
	form := wantKept(over, "Your session has ended")
	wantText(t, "the page after the login ended", over, `data-return="/account?project=`+w.project.ID+`"`)
	form = wantKept(b.fromPage(path, form), "Your session has ended")

	// A form from another login needs a confirmation.
	b.account()
	asked := b.fromPage(path, form)
	form = wantKept(asked, "Send the form now?")
	wantText(t, "the question", asked, "The form changes the account "+w.ada.Title())
	wantName("Ada")
	wantText(t, "after the confirmation", b.fromPage(path, form), "Your profile is saved.")
	wantName(`Augusta "<i>"`)
}

// TestUnconfirmedAccountForm shows that a browser without scripts keeps a form that needs a recent
// login, and can send it after one.
func TestUnconfirmedAccountForm(t *testing.T) {
	w := newWorld(t)
	b := w.newBrowser()
	const path = "/account/email"
	typed := with(formOf(t, b.account(), path), "email", "new@example.com")
	w.pass(11 * time.Minute)
	page := b.fromPage(path, typed)
	again := "/account?project=" + w.project.ID + "&again"
	wantStatus(t, "with an old login", page, http.StatusForbidden)
	wantText(t, "with an old login", page, `href="`+html.EscapeString(again)+`"`)

	b.logIn(b.get(again), email, secret)
	page = b.fromPage(path, formOf(t, page, path))
	wantText(t, "the form of the earlier login", page, "Send the form now?") // another login has another token
	page = b.fromPage(path, formOf(t, page, path))
	wantText(t, "after a login", page, "We sent a link")
	wantText(t, "signing in again with a recent login", b.get(again), `id="account-page"`)
}

// TestUnsentSecrets shows that no page keeps a form of the account page with a secret, or one that
// may come from another site.
func TestUnsentSecrets(t *testing.T) {
	w := newWorld(t)
	b := w.newBrowser()
	const canary = "canary-6f1d"
	for path, pairs := range map[string][]string{
		"/account/password":    {"name", "x", "current", canary},
		"/account/passkeys":    {"name", "x", "credential", canary},
		"/account/app/confirm": {"name", "x", "code", canary},
	} {
		got := b.fromPage(path, with(url.Values{"project": {w.project.ID}}, pairs...))
		wantText(t, path, got, `id="login-submit"`)
		wantNoText(t, path, got, canary)
	}
	got := b.post("/account/profile", url.Values{"project": {w.project.ID}, "first_name": {canary}})
	wantText(t, "a form of unknown origin", got, `id="login-submit"`)
	wantNoText(t, "a form of unknown origin", got, canary)
}
