package oidc_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/idp"
)

// choose picks the account with this email address on the account chooser.
func (b *browser) choose(page reply, email string) reply {
	b.w.t.Helper()
	account := regexp.MustCompile(
		`name="account" value="([^"]+)">(?:<span class="name">[^<]*</span>)?<span class="why">` +
			regexp.QuoteMeta(email) + `<`).FindStringSubmatch(page.body)
	id := hiddenID.FindStringSubmatch(page.body)
	if account == nil || id == nil {
		b.w.t.Fatalf("the account chooser does not show %s: %d %v %s", email, page.status, page.location, page.body)
	}
	return b.post("/accounts", url.Values{"id": {id[1]}, "account": {account[1]}})
}

// who redeems the code in a response and returns the subject of the tokens.
func (w *world) who(c idp.Client, got reply) string {
	w.t.Helper()
	if got.param("code") == "" {
		w.t.Fatalf("no code: %d %v", got.status, got.parameters())
	}
	tokens := w.redeem(c, got.param("code")).json(w.t)
	return text(idClaims(w.t, tokens)["sub"])
}

const bobs = "bob@example.com"

// TestAccounts shows that a browser can hold several logins in a project. A person can choose one
// of them, and an app can ask for a certain one.
func TestAccounts(t *testing.T) {
	w := newWorld(t)
	bob := w.subscriber(bobs)
	c, _ := w.client(withLogout)
	b := w.browser()
	hint := text(w.redeem(c, b.code(c)).json(t)["id_token"])

	if page := b.authorize(request(c, "prompt", "select_account")); !strings.Contains(page.body, `id="account-0"`) ||
		strings.Contains(page.body, `id="account-1"`) {
		t.Errorf("the account chooser does not show exactly one account: %s", page.body)
	}

	w.pass(time.Minute)
	if got := w.who(c, b.logIn(b.authorize(request(c, "prompt", "select_account")), bobs, secret)); got != bob.ID {
		t.Fatalf("bob signed in, but the tokens belong to %s", got)
	}

	// A request is answered by the current login, or by the login that the request names. The
	// second round reads the logins from the database.
	for range 2 {
		for _, tt := range []struct {
			name  string
			pairs []string
			want  string
		}{
			{"the account in use", nil, bob.ID},
			{"ada by a hint", []string{"id_token_hint", hint}, w.ada.ID},
			{"ada by the claim sub", []string{"claims", `{"id_token":{"sub":{"value":"` + w.ada.ID + `"}}}`},
				w.ada.ID},
		} {
			if got := w.who(c, b.authorize(request(c, append(tt.pairs, "prompt", "none")...))); got != tt.want {
				t.Errorf("%s: the tokens belong to %s, want %s", tt.name, got, tt.want)
			}
		}
		w.empty() // the database contains the same logins
	}

	// A chosen login becomes the current one.
	if got := w.who(c, b.choose(b.authorize(request(c, "prompt", "select_account")), email)); got != w.ada.ID {
		t.Errorf("ada was chosen, but the tokens belong to %s", got)
	}
	if got := w.who(c, b.authorize(request(c, "prompt", "none"))); got != w.ada.ID {
		t.Errorf("after ada was chosen, %s is the current account", got)
	}

	// A choice cannot override the request's hint.
	page := b.authorize(request(c, "prompt", "select_account", "id_token_hint", hint))
	if got := b.choose(page, bobs); got.param("error") != "login_required" {
		t.Errorf("bob was chosen for a request with ada's hint: %d %v, want login_required",
			got.status, got.parameters())
	}
}

// TestAccountsAndAge shows that a person who chooses an account must still sign in again if the
// login is too old.
func TestAccountsAndAge(t *testing.T) {
	w := newWorld(t)
	w.subscriber(bobs)
	c, _ := w.client(nil)
	b := w.browser()
	b.code(c)
	b.logIn(b.authorize(request(c, "prompt", "login")), bobs, secret)
	w.pass(time.Minute)

	for _, pairs := range [][]string{{"prompt", "select_account login"},
		{"prompt", "select_account", "max_age", "5"}} {
		got := b.choose(b.authorize(request(c, pairs...)), email)
		if got.location != nil || !strings.Contains(got.body, `value="`+email+`"`) ||
			!strings.Contains(got.body, `id="login-submit"`) {
			t.Errorf("%v: %d %v %s, want a login page with the email", pairs, got.status, got.location, got.body)
		}
		if got := w.who(c, b.logIn(got, email, secret)); got != w.ada.ID {
			t.Errorf("%v: the tokens belong to %s", pairs, got)
		}
		w.pass(time.Minute)
	}
}

// TestAccountsAfterLogout shows that no other login becomes the current one after a logout.
func TestAccountsAfterLogout(t *testing.T) {
	w := newWorld(t)
	w.subscriber(bobs)
	c, _ := w.client(withLogout)
	b := w.browser()
	b.code(c)
	got := b.logIn(b.authorize(request(c, "prompt", "login")), bobs, secret)
	hint := text(w.redeem(c, got.param("code")).json(t)["id_token"])
	b.get("/oauth/logout?" + url.Values{"id_token_hint": {hint}}.Encode())

	// The remaining login must be chosen, even after the session store was emptied.
	for range 2 {
		if got := b.authorize(request(c, "prompt", "none")); got.param("error") != "account_selection_required" {
			t.Errorf("prompt=none after the logout: %v, want account_selection_required",
				got.parameters())
		}
		page := b.authorize(request(c))
		if !strings.Contains(page.body, email) || strings.Contains(page.body, bobs) {
			t.Errorf("after bob's logout: %d %v %s, want a choice of ada", page.status, page.parameters(), page.body)
		}
		w.empty()
	}
	if got := w.who(c, b.choose(b.authorize(request(c)), email)); got != w.ada.ID {
		t.Errorf("ada was chosen, but the tokens belong to %s", got)
	}

	// After a logout of all logins there is nothing to choose from.
	b.submit(b.get("/logout"))
	if page := b.authorize(request(c)); !strings.Contains(page.body, `id="login-submit"`) {
		t.Errorf("after a logout of all accounts: %d %s, want the login page", page.status, page.body)
	}
}

// TestAccountsOfOthers shows that a choice is refused if it names an unknown login, or a login of
// another browser or project. It is also refused if it comes from another site.
func TestAccountsOfOthers(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	b := w.browser()
	b.code(c)

	// The browser also holds a login in another project.
	here := w.project
	other, err := w.fabric.Projects.Create(t.Context(), "Other")
	must(t, err)
	w.project = other
	w.subscriber(email)
	there, _ := w.client(nil)
	w.project = here
	b.code(there)
	account := regexp.MustCompile(`name="account" value="([^"]+)"`)
	foreign := account.FindStringSubmatch(b.authorize(request(there, "prompt", "select_account")).body)[1]

	stranger := w.browser()
	stranger.code(c)
	theirs := account.FindStringSubmatch(stranger.authorize(request(c, "prompt", "select_account")).body)[1]
	page := b.authorize(request(c, "prompt", "select_account"))
	id, own := hiddenID.FindStringSubmatch(page.body)[1], account.FindStringSubmatch(page.body)[1]

	// Digests of logins that are not on the page are refused.
	for name, digest := range map[string]string{"another project's": foreign, "another browser's": theirs,
		"none": "", "nonsense": "x"} {
		if got := b.post("/accounts",
			url.Values{"id": {id}, "account": {digest}}); got.status != http.StatusBadRequest ||
			got.location != nil {
			t.Errorf("%s: %d %v, want 400", name, got.status, got.location)
		}
	}

	// Choices from another browser or another site are also refused.
	if got := stranger.post("/accounts", url.Values{"id": {id}, "account": {own}}); got.status != http.StatusForbidden {
		t.Errorf("a page shown to another browser: %d, want 403", got.status)
	}
	req, err := http.NewRequest(http.MethodPost, w.url+"/accounts",
		strings.NewReader(url.Values{"id": {id}, "account": {own}}.Encode()))
	must(t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Sec-Fetch-Site", "cross-site")
	if got := b.do(req); got.status != http.StatusForbidden {
		t.Errorf("a choice from another site: %d, want 403", got.status)
	}
	if got := b.post("/accounts", url.Values{"id": {id}, "account": {own}}); got.param("code") == "" {
		t.Errorf("the permitted choice: %d %v, want a code", got.status, got.parameters())
	}
}

// TestAccountsInUse shows that the chosen subscriber is asked for consent, that disabled
// subscribers are not offered, and that a browser holds at most [idp.MaxLogins] logins.
func TestAccountsInUse(t *testing.T) {
	w := newWorld(t)
	first := w.subscriber("1@example.com")
	c, _ := w.client(nil)
	third, _ := w.client(func(n *idp.Client) { n.FirstParty = false })
	b := w.browser()

	// Sign in one more time than the maximum, so that the first login is dropped.
	b.logIn(b.authorize(request(c)), "1@example.com", secret)
	for i := 2; i <= idp.MaxLogins+1; i++ {
		w.subscriber(fmt.Sprintf("%d@example.com", i))
		b.logIn(b.authorize(request(c, "prompt", "login")), fmt.Sprintf("%d@example.com", i), secret)
	}
	page := b.authorize(request(third, "prompt", "select_account"))
	if n := strings.Count(page.body, `name="account"`); n != idp.MaxLogins ||
		strings.Contains(page.body, "1@example.com") {
		t.Errorf("%d accounts are offered, want %d without the first: %s", n, idp.MaxLogins, page.body)
	}
	if hint := b.authorize(request(c, "prompt", "none",
		"claims", `{"id_token":{"sub":{"value":"`+first.ID+`"}}}`)); hint.param("error") != "login_required" {
		t.Errorf("the login that was dropped: %v, want login_required", hint.parameters())
	}

	// The chosen account sees the consent page.
	consent := b.choose(page, "3@example.com")
	if !strings.Contains(consent.body, "3@example.com") || !strings.Contains(consent.body, `id="consent-allow"`) {
		t.Fatalf("no consent page for the chosen account: %d %s", consent.status, consent.body)
	}
	if got := b.consent(consent, "allow"); got.param("code") == "" {
		t.Errorf("allowing: %d %v, want a code", got.status, got.parameters())
	}

	// A subscriber who was disabled in the meantime is not offered.
	two, err := w.rows.FindSubscriberByEmail(t.Context(), w.project.ID, "2@example.com")
	must(t, err)
	_, err = w.fabric.Subscribers.Update(t.Context(), w.project.ID, two.ID, fabricChange(true))
	must(t, err)
	if page := b.authorize(request(c, "prompt", "select_account")); strings.Contains(page.body, "2@example.com") ||
		!strings.Contains(page.body, "4@example.com") {
		t.Errorf("a disabled subscriber is offered as an account: %s", page.body)
	}
}
