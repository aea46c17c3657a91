package oidc_test

import (
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
		b.w.t.Fatalf("opening the account page: %d %s, want the page", page.status, page.body)
	}
	return page
}

// onPage posts a form to path. The form contains the hidden fields of page, and the fields in pairs.
func (b *browser) onPage(page reply, path string, pairs ...string) reply {
	b.w.t.Helper()
	return b.post(path, with(page.hiddenFields(), pairs...))
}

// TestAccountProfile shows that people can change their own profile, and that names are escaped.
func TestAccountProfile(t *testing.T) {
	w := newWorld(t)
	b := w.newBrowser()
	got := b.onPage(b.account(), "/account/profile", "first_name", "Augusta", "last_name", `<script>King`,
		"display_name", "")
	wantText(t, "saving the profile", got, "Your profile is saved.", "Augusta &lt;script&gt;King")

	sub, err := w.fabric.Subscribers.Find(t.Context(), w.project.ID, w.ada.ID)
	must(t, err)
	if sub.FirstName != "Augusta" {
		t.Errorf("the first name is %q, want Augusta", sub.FirstName)
	}

	wantText(t, "/account without a project, when signed in", b.get("/account"), `id="account-page"`)
	unknown := w.newBrowser().get("/account?project=" + w.ada.ID)
	wantStatus(t, "/account of an unknown project", unknown, http.StatusNotFound)
}

// TestAccountData shows that people can download their own data a few times an hour, but only with
// the page's token.
func TestAccountData(t *testing.T) {
	w := newWorld(t)
	b := w.newBrowser()
	page := b.account()
	forged := b.post("/account/data", url.Values{"project": {w.project.ID}})
	wantStatus(t, "a form without a token", forged, http.StatusForbidden)

	for range 6 {
		got := b.onPage(page, "/account/data")
		wantStatus(t, "a download", got, http.StatusOK)
		wantText(t, "a download", got, email)
		wantNoText(t, "a download", got, "password_hash")
	}
	seventh := b.onPage(page, "/account/data")
	wantStatus(t, "the seventh download", seventh, http.StatusTooManyRequests)
	wantText(t, "the seventh download", seventh, "Too many requests", "Wait 10 minutes, then try again.")
}

// TestAccountCalls shows that people see in their account whether their calls are recorded.
func TestAccountCalls(t *testing.T) {
	w := newWorld(t)
	b := w.newBrowser()
	const notice = "Calls that you make and receive are recorded."
	wantNoText(t, "the account page without recording", b.account(), notice)
	record := fabric.SubscriberInput{RecordCalls: new(fabric.RecordOn)}
	_, err := w.fabric.Subscribers.Update(t.Context(), w.project.ID, w.ada.ID, record)
	must(t, err)
	wantText(t, "the account page with recording", b.account(), notice)
}

// TestAccountForms shows that the forms on the account page are accepted only from the login for
// which the page was shown.
func TestAccountForms(t *testing.T) {
	w := newWorld(t)
	grace := w.subscriber("grace@example.com")
	mine, theirs := w.newBrowser(), w.newBrowser()
	page := mine.account()
	fields := theirs.logInAs(grace.Email).hiddenFields()
	if fields.Get("token") == "" {
		t.Fatal("the account page has no form token")
	}

	for name, token := range map[string]string{
		"of another login": fields.Get("token"),
		"missing":          "",
		"made-up":          "AAAA",
	} {
		got := mine.onPage(page, "/account/profile", "token", token, "first_name", "Eve")
		wantStatus(t, "a form whose token is "+name, got, http.StatusForbidden)
	}

	sub, err := w.fabric.Subscribers.Find(t.Context(), w.project.ID, w.ada.ID)
	must(t, err)
	if sub.FirstName != "Ada" {
		t.Errorf("a refused form changed the name to %q", sub.FirstName)
	}

	// A form sent by another site is refused even with the right token.
	req, err := http.NewRequest(http.MethodPost, w.url+"/account/profile", strings.NewReader(fields.Encode()))
	must(t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", "https://evil.example")
	wantStatus(t, "a form sent by another site", theirs.do(req), http.StatusForbidden)
}

// TestAccountPassword shows that changing the password requires the current one, and signs out all
// other browsers.
func TestAccountPassword(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	here, there := w.newBrowser(), w.newBrowser()
	there.account()
	page := here.account()

	wrong := here.onPage(page, "/account/password", "current", "wrong", "password", "violet ferry kitchen 9")
	wantStatus(t, "a wrong password", wrong, http.StatusUnprocessableEntity)
	wantText(t, "a wrong password", wrong, "The current password is wrong.")

	// The change keeps this browser signed in and signs the other one out.
	w.pass(time.Second)
	changed := here.onPage(page, "/account/password", "current", secret, "password", "violet ferry kitchen 9")
	wantText(t, "changing the password", changed, "Your password was changed.")
	w.pass(time.Second)
	wantText(t, "the browser that changed the password", here.get("/account"), `id="account-page"`)
	if got := there.get("/account?project=" + w.project.ID); !hiddenID.MatchString(got.body) {
		t.Errorf("another browser is still signed in: %s", got.body)
	}

	b := w.newBrowser()
	old := b.logIn(b.authorize(request(c)), email, secret)
	wantStatus(t, "a login with the old password", old, http.StatusUnprocessableEntity)
}
