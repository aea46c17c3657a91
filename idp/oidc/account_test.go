package oidc_test

import (
	"context"
	"html"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
)

// account opens the account page, after signing ada in if necessary.
func (b *browser) account() reply {
	b.w.t.Helper()
	page := b.get("/account?project=" + b.w.project.ID)
	if hiddenID.MatchString(page.body) {
		page = b.logIn(page, email, secret)
	}
	if !strings.Contains(page.body, `id="account-page"`) {
		b.w.t.Fatalf("no account page: %d %s", page.status, page.body)
	}
	return page
}

// onPage posts the form on page whose action is path, including its hidden fields. pairs contains
// its other fields.
func (b *browser) onPage(page reply, path string, pairs ...string) reply {
	b.w.t.Helper()
	form := url.Values{}
	for _, m := range hiddenField.FindAllStringSubmatch(page.body, -1) {
		form.Set(m[1], html.UnescapeString(m[2]))
	}
	return b.post(path, with(form, pairs...))
}

// TestAccountProfile shows that people can change their own profile, and that names are escaped.
func TestAccountProfile(t *testing.T) {
	w := newWorld(t)
	b := w.browser()
	got := b.onPage(b.account(), "/account/profile", "first_name", "Augusta", "last_name", `<script>King`,
		"display_name", "")
	if !strings.Contains(got.body, "Your profile is saved.") ||
		!strings.Contains(got.body, "Augusta &lt;script&gt;King") {
		t.Errorf("saving the profile: %d %s, want a notice and the escaped name", got.status, got.body)
	}

	sub, err := w.fabric.Subscribers.Find(context.Background(), w.project.ID, w.ada.ID)
	must(t, err)
	if sub.FirstName != "Augusta" {
		t.Errorf("first name = %q, want Augusta", sub.FirstName)
	}

	if got := b.get("/account"); !strings.Contains(got.body, `id="account-page"`) {
		t.Errorf("/account without a project, when signed in: %d %s, want the account page", got.status, got.body)
	}
	if got := w.browser().get("/account?project=" + w.ada.ID); got.status != http.StatusNotFound {
		t.Errorf("/account of an unknown project: %d, want 404", got.status)
	}
}

// TestAccountData shows that people can download their own data a few times an hour, but only with
// the page's token.
func TestAccountData(t *testing.T) {
	w := newWorld(t)
	b := w.browser()
	page := b.account()
	if got := b.post("/account/data", url.Values{"project": {w.project.ID}}); got.status != http.StatusForbidden {
		t.Errorf("a form without a token: %d, want 403", got.status)
	}

	for i := range 7 {
		got := b.onPage(page, "/account/data")
		if i == 6 {
			if got.status != http.StatusTooManyRequests {
				t.Errorf("the seventh download: %d, want 429", got.status)
			}
			continue
		}
		if got.status != http.StatusOK || !strings.Contains(got.body, email) ||
			strings.Contains(got.body, "password_hash") {
			t.Errorf("download %d: %d %s, want 200 with the email and without the hash", i, got.status, got.body)
		}
	}
}

// TestAccountCalls shows that people see in their account whether their calls are recorded.
func TestAccountCalls(t *testing.T) {
	w := newWorld(t)
	b := w.browser()
	const said = "Calls that you make and receive are recorded."
	if page := b.account(); strings.Contains(page.body, said) {
		t.Error("the account page says that calls are recorded, but they are not")
	}
	on := fabric.RecordOn
	_, err := w.fabric.Subscribers.Update(t.Context(), w.project.ID, w.ada.ID, fabric.SubscriberInput{RecordCalls: &on})
	must(t, err)
	if page := b.account(); !strings.Contains(page.body, said) {
		t.Error("the account page does not say that calls are recorded")
	}
}

// TestAccountForms shows that the forms on the account page are accepted only from the login for
// which the page was shown.
func TestAccountForms(t *testing.T) {
	w := newWorld(t)
	grace := w.subscriber("grace@example.com")
	mine, theirs := w.browser(), w.browser()
	page := mine.account()
	got := theirs.get("/account?project=" + w.project.ID)
	got = theirs.logIn(got, grace.Email, secret)
	token := url.Values{}
	for _, m := range hiddenField.FindAllStringSubmatch(got.body, -1) {
		token.Set(m[1], m[2])
	}
	if token.Get("token") == "" {
		t.Fatalf("no form token: %s", got.body)
	}

	for name, value := range map[string]string{"of another login": token.Get("token"), "missing": "",
		"made-up": "AAAA"} {
		if got := mine.onPage(page, "/account/profile", "token", value,
			"first_name", "Eve"); got.status != http.StatusForbidden {
			t.Errorf("a form whose token is %s: %d, want 403", name, got.status)
		}
	}

	sub, err := w.fabric.Subscribers.Find(context.Background(), w.project.ID, w.ada.ID)
	must(t, err)
	if sub.FirstName != "Ada" {
		t.Errorf("a refused form changed the name to %q", sub.FirstName)
	}

	// A form sent by another site is refused even with the right token.
	req, err := http.NewRequest(http.MethodPost, w.url+"/account/profile",
		strings.NewReader(maps.Clone(token).Encode()))
	must(t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", "https://evil.example")
	if got := theirs.do(req); got.status != http.StatusForbidden {
		t.Errorf("a form sent by another site: %d, want 403", got.status)
	}
}

// TestAccountPassword shows that changing the password requires the current one, and signs out all
// other browsers.
func TestAccountPassword(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	here, there := w.browser(), w.browser()
	there.account()
	page := here.account()

	if got := here.onPage(page, "/account/password", "current", "wrong",
		"password", "violet ferry kitchen 9"); got.status != http.StatusUnprocessableEntity ||
		!strings.Contains(got.body, "The current password is wrong.") {
		t.Errorf("with a wrong password: %d %s, want 422 that says so", got.status, got.body)
	}

	// The change keeps this browser signed in and signs the other one out.
	w.pass(time.Second)
	got := here.onPage(page, "/account/password", "current", secret, "password", "violet ferry kitchen 9")
	if !strings.Contains(got.body, "Your password was changed.") {
		t.Fatalf("changing the password: %d %s, want a notice", got.status, got.body)
	}
	w.pass(time.Second)
	if got := here.get("/account"); !strings.Contains(got.body, `id="account-page"`) {
		t.Errorf("the browser that changed the password is signed out: %s", got.body)
	}
	if got := there.get("/account?project=" + w.project.ID); !hiddenID.MatchString(got.body) {
		t.Errorf("another browser is still signed in: %s", got.body)
	}

	if got := w.browser(); got.logIn(got.authorize(request(c)), email, secret).status !=
		http.StatusUnprocessableEntity {
		t.Error("the old password is still accepted")
	}
}
