package oidc_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
)

// choose picks the account with this email address on the account chooser.
func (b *browser) choose(page reply, email string) reply {
	b.w.t.Helper()
	button := regexp.MustCompile(`name="account" value="([^"]+)">` +
		`(?:<span class="name">[^<]*</span>)?<span class="why">` + regexp.QuoteMeta(email) + `<`)
	account := button.FindStringSubmatch(page.body)
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
		w.t.Fatalf("the response has no code: %d %v", got.status, got.parameters())
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
	b := w.newBrowser()
	hint := text(w.redeem(c, b.code(c)).json(t)["id_token"])

	selectAccount := func() reply { return b.authorize(request(c, "prompt", "select_account")) }
	wantText(t, "the account chooser", selectAccount(), `id="account-0"`)
	wantNoText(t, "the account chooser", selectAccount(), `id="account-1"`)

	w.pass(time.Minute)
	if got := w.who(c, b.logIn(selectAccount(), bobs, secret)); got != bob.ID {
		t.Fatalf("bob signed in, but the tokens belong to %s, want %s", got, bob.ID)
	}

	// A request is answered by the current login, or by the login that the request names. The
	// second round reads the logins from the database.
	for range 2 {
		if got := w.who(c, b.authorize(request(c, "prompt", "none"))); got != bob.ID {
			t.Errorf("the account in use: the tokens belong to %s, want %s", got, bob.ID)
		}
		byHint := b.authorize(request(c, "prompt", "none", "id_token_hint", hint))
		if got := w.who(c, byHint); got != w.ada.ID {
			t.Errorf("ada by a hint: the tokens belong to %s, want %s", got, w.ada.ID)
		}
		bySub := b.authorize(request(c, "prompt", "none", "claims", claimSub(w.ada.ID)))
		if got := w.who(c, bySub); got != w.ada.ID {
			t.Errorf("ada by the claim sub: the tokens belong to %s, want %s", got, w.ada.ID)
		}
		w.empty() // the database contains the same logins
	}

	// A chosen login becomes the current one.
	if got := w.who(c, b.choose(selectAccount(), email)); got != w.ada.ID {
		t.Errorf("ada was chosen, but the tokens belong to %s, want %s", got, w.ada.ID)
	}
	if got := w.who(c, b.authorize(request(c, "prompt", "none"))); got != w.ada.ID {
		t.Errorf("after ada was chosen, the tokens belong to %s, want %s", got, w.ada.ID)
	}

	// A choice cannot override the request's hint.
	page := b.authorize(request(c, "prompt", "select_account", "id_token_hint", hint))
	wantParam(t, "bob for a request with ada's hint", b.choose(page, bobs), "error", "login_required")
}

// claimSub returns a claims parameter that asks for the subscriber with this sub.
func claimSub(sub string) string { return `{"id_token":{"sub":{"value":"` + sub + `"}}}` }

// TestAccountsAndAge shows that a person who chooses an account must still sign in again if the
// login is too old.
func TestAccountsAndAge(t *testing.T) {
	w := newWorld(t)
	w.subscriber(bobs)
	c, _ := w.client(nil)
	b := w.newBrowser()
	b.code(c)
	b.logIn(b.authorize(request(c, "prompt", "login")), bobs, secret)
	w.pass(time.Minute)

	for name, params := range map[string]url.Values{
		"prompt=login": request(c, "prompt", "select_account login"),
		"max_age":      request(c, "prompt", "select_account", "max_age", "5"),
	} {
		page := b.choose(b.authorize(params), email)
		wantText(t, name, page, `value="`+email+`"`, `id="login-submit"`)
		if got := w.who(c, b.logIn(page, email, secret)); got != w.ada.ID {
			t.Errorf("%s: the tokens belong to %s, want %s", name, got, w.ada.ID)
		}
		w.pass(time.Minute)
	}
}

// TestAccountsAfterLogout shows that no other login becomes the current one after a logout.
func TestAccountsAfterLogout(t *testing.T) {
	w := newWorld(t)
	w.subscriber(bobs)
	c, _ := w.client(withLogout)
	b := w.newBrowser()
	b.code(c)
	got := b.logIn(b.authorize(request(c, "prompt", "login")), bobs, secret)
	hint := text(w.redeem(c, got.param("code")).json(t)["id_token"])
	b.endSession("id_token_hint", hint)

	// The remaining login must be chosen, even after the session store was emptied.
	for range 2 {
		silent := b.authorize(request(c, "prompt", "none"))
		wantParam(t, "prompt=none after the logout", silent, "error", "account_selection_required")
		page := b.authorize(request(c))
		wantText(t, "after bob's logout", page, email)
		wantNoText(t, "after bob's logout", page, bobs)
		w.empty()
	}
	if got := w.who(c, b.choose(b.authorize(request(c)), email)); got != w.ada.ID {
		t.Errorf("ada was chosen, but the tokens belong to %s, want %s", got, w.ada.ID)
	}

	// After a logout of all logins there is nothing to choose from.
	b.signOut()
	wantText(t, "after a logout of all accounts", b.authorize(request(c)), `id="login-submit"`)
}

// TestAccountsOfOthers shows that a choice is refused if it names an unknown login, or a login of
// another browser or project. It is also refused if it comes from another site.
func TestAccountsOfOthers(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	b := w.newBrowser()
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

	firstAccount := func(page reply) string {
		return regexp.MustCompile(`name="account" value="([^"]+)"`).FindStringSubmatch(page.body)[1]
	}
	foreign := firstAccount(b.authorize(request(there, "prompt", "select_account")))
	stranger := w.newBrowser()
	stranger.code(c)
	theirs := firstAccount(stranger.authorize(request(c, "prompt", "select_account")))
	page := b.authorize(request(c, "prompt", "select_account"))
	id, own := hiddenID.FindStringSubmatch(page.body)[1], firstAccount(page)

	// Digests of logins that are not on the page are refused.
	for name, digest := range map[string]string{
		"another project's": foreign,
		"another browser's": theirs,
		"none":              "",
		"nonsense":          "x",
	} {
		got := b.post("/accounts", url.Values{"id": {id}, "account": {digest}})
		wantStatus(t, name, got, http.StatusBadRequest)
		if got.location != nil {
			t.Errorf("%s: a redirect to %v, want none", name, got.location)
		}
	}

	// Choices from another browser or another site are also refused.
	choice := url.Values{"id": {id}, "account": {own}}
	wantStatus(t, "a page shown to another browser", stranger.post("/accounts", choice), http.StatusForbidden)
	req, err := http.NewRequest(http.MethodPost, w.url+"/accounts", strings.NewReader(choice.Encode()))
	must(t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Sec-Fetch-Site", "cross-site")
	wantStatus(t, "a choice from another site", b.do(req), http.StatusForbidden)
	wantCode(t, "the permitted choice", b.post("/accounts", choice))
}

// TestAccountsInUse shows that the chosen subscriber is asked for consent, that disabled
// subscribers are not offered, and that a browser holds at most [idp.MaxLogins] logins.
func TestAccountsInUse(t *testing.T) {
	w := newWorld(t)
	first := w.subscriber("1@example.com")
	c, _ := w.client(nil)
	third, _ := w.client(func(n *idp.Client) { n.FirstParty = false })
	b := w.newBrowser()

	// Sign in one more time than the maximum, so that the first login is dropped.
	b.logIn(b.authorize(request(c)), first.Email, secret)
	for i := 2; i <= idp.MaxLogins+1; i++ {
		next := w.subscriber(fmt.Sprintf("%d@example.com", i))
		b.logIn(b.authorize(request(c, "prompt", "login")), next.Email, secret)
	}
	page := b.authorize(request(third, "prompt", "select_account"))
	if n := strings.Count(page.body, `name="account"`); n != idp.MaxLogins {
		t.Errorf("%d accounts are offered, want %d", n, idp.MaxLogins)
	}
	wantNoText(t, "the account chooser", page, first.Email)
	dropped := b.authorize(request(c, "prompt", "none", "claims", claimSub(first.ID)))
	wantParam(t, "the login that was dropped", dropped, "error", "login_required")

	// The chosen account sees the consent page.
	consent := b.choose(page, "3@example.com")
	wantText(t, "the page after the choice", consent, "3@example.com", `id="consent-allow"`)
	wantCode(t, "allowing", b.consent(consent, "allow"))

	// A subscriber who was disabled in the meantime is not offered.
	second, err := w.rows.FindSubscriberByEmail(t.Context(), w.project.ID, "2@example.com")
	must(t, err)
	disable := fabric.SubscriberInput{Disabled: new(true)}
	_, err = w.fabric.Subscribers.Update(t.Context(), w.project.ID, second.ID, disable)
	must(t, err)
	page = b.authorize(request(c, "prompt", "select_account"))
	wantText(t, "the account chooser", page, "4@example.com")
	wantNoText(t, "the account chooser", page, "2@example.com")
}
