package oidc_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
)

const goodbye = "https://app.example/bye"

func withLogout(n *idp.Client) { n.LogoutURIs = []string{goodbye} }

// endSession requests a logout for a client. pairs are the names and values of parameters.
func (b *browser) endSession(pairs ...string) reply {
	b.w.t.Helper()
	return b.get("/oauth/logout?" + with(url.Values{}, pairs...).Encode())
}

// TestLogout shows that a logout with a hint ends the login and its tokens, and redirects to the
// client. Refresh tokens also end, even if offline_access was granted.
func TestLogout(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(withLogout)
	b := w.newBrowser()
	set := w.redeem(c, b.code(c, "scope", "openid offline_access")).json(t)
	hint := text(set["id_token"])
	got := b.endSession("id_token_hint", hint, "post_logout_redirect_uri", goodbye, "state", "x y")
	wantRedirect(t, "the logout", got, goodbye+"?state=x+y")

	silent := b.authorize(request(c, "prompt", "none"))
	wantParam(t, "prompt=none after a logout", silent, "error", "login_required")
	info := w.userinfo(text(set["access_token"]))
	wantStatus(t, "userinfo after a logout", info, http.StatusUnauthorized)
	wantError(t, "a refresh after a logout", w.refresh(c, text(set["refresh_token"])), "invalid_grant")

	again := b.endSession("id_token_hint", hint)
	wantStatus(t, "a second logout", again, http.StatusOK)
	wantText(t, "a second logout", again, "You are signed out")
}

// TestLogoutEndsCopiedCookies shows that a cookie that was copied before a logout is invalid after the
// logout.
func TestLogoutEndsCopiedCookies(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(withLogout)
	b, thief := w.newBrowser(), w.newBrowser()
	set := w.redeem(c, b.code(c)).json(t)

	home, err := url.Parse(w.url)
	must(t, err)
	thief.http.Jar.SetCookies(home, b.http.Jar.Cookies(home))
	wantCode(t, "with the copied cookie before the logout", thief.authorize(request(c)))

	b.endSession("id_token_hint", text(set["id_token"]))
	page := thief.authorize(request(c))
	wantStatus(t, "with the copied cookie after the logout", page, http.StatusOK)
}

// TestLoginRenewsCookie shows that a login changes the ID of the browser's session. An ID planted
// in a victim's browser is therefore useless.
func TestLoginRenewsCookie(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	home, err := url.Parse(w.url)
	must(t, err)
	b := w.newBrowser()
	b.code(c)
	cookie := func(b *browser) string {
		for _, cookie := range b.http.Jar.Cookies(home) {
			if cookie.Name == "selvage" {
				return cookie.Value
			}
		}
		return ""
	}

	planted := cookie(b)
	victim := w.newBrowser()
	victim.http.Jar.SetCookies(home, []*http.Cookie{{Name: "selvage", Value: planted, Path: "/"}})
	page := victim.authorize(request(c, "prompt", "login"))
	victim.logIn(page, email, secret)
	if got := cookie(victim); got == planted || got == "" {
		t.Errorf("the cookie after a login is %q, want a value other than %q, which it had before", got, planted)
	}
}

// TestLogoutAsks shows that a logout without a hint asks the person first.
func TestLogoutAsks(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(withLogout)
	b := w.newBrowser()
	w.redeem(c, b.code(c))

	page := b.endSession()
	wantText(t, "a logout without a hint", page, `id="logout-confirm"`)
	if page.location != nil {
		t.Fatalf("a logout without a hint redirects to %v, want the confirmation page", page.location)
	}

	page = b.endSession("client_id", c.ID, "post_logout_redirect_uri", goodbye, "state", `"><script>`)
	if page.location != nil {
		t.Fatalf("a logout with a redirect URI but no hint redirects to %v, want a page", page.location)
	}
	if strings.Contains(page.body, "<script") {
		t.Fatalf("the confirmation page contains a script: %s", page.body)
	}

	wantCode(t, "a request before the confirmation", b.authorize(request(c)))
	page = b.endSession("client_id", c.ID, "post_logout_redirect_uri", goodbye, "state", "x")
	wantRedirect(t, "confirming the logout", b.submit(page), goodbye+"?state=x")
	wantStatus(t, "a request after the confirmation", b.authorize(request(c)), http.StatusOK)
	wantText(t, "confirming a logout without a login", b.submit(b.get("/logout")), "You are signed out")
}

// TestLogoutLooks shows that the pages of a logout have the project's branding if the browser's
// logins identify the project. People can cancel the logout.
func TestLogoutLooks(t *testing.T) {
	w := newWorld(t)
	color := "#106040"
	_, err := w.fabric.Projects.Update(context.Background(), w.project.ID, fabric.ProjectChange{Color: &color})
	must(t, err)
	c, _ := w.client(withLogout)
	b := w.newBrowser()
	w.redeem(c, b.code(c))

	const sheet = `href="/brand/106040.css"`
	account := `id="logout-cancel" href="/account?project=` + w.project.ID + `"`
	page := b.get("/logout")
	wantText(t, "the confirmation page", page, sheet, account)
	wantText(t, "the confirmation page for an app", b.endSession("client_id", c.ID),
		`id="logout-cancel" href="https://`)
	wantText(t, "the last page", b.submit(page), sheet, "login-again")

	plain := b.get("/logout")
	wantText(t, "the confirmation page without a login", plain, `id="logout-cancel" href="/"`)
	if strings.Contains(plain.body, sheet) {
		t.Errorf("without a login, the confirmation page has the branding of a project: %s", plain.body)
	}
}

// TestLogoutOfSomebodyElse shows that a hint for another subscriber does not sign a person out
// without asking.
func TestLogoutOfSomebodyElse(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(withLogout)
	w.subscriber("bob@example.com")
	hint := text(w.tokens(c)["id_token"])
	b := w.newBrowser()
	b.logIn(b.authorize(request(c)), "bob@example.com", secret)
	got := b.endSession("id_token_hint", hint, "post_logout_redirect_uri", goodbye)
	wantText(t, "ada's hint in bob's browser", got, `id="logout-confirm"`)
	if got.location != nil {
		t.Errorf("ada's hint in bob's browser redirects to %v, want the confirmation page", got.location)
	}
}

// TestLogoutRefuses shows that invalid logout requests are rejected.
func TestLogoutRefuses(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(withLogout)
	other, _ := w.client(withLogout)
	set := w.tokens(c)
	hint := text(set["id_token"])
	parts := strings.Split(hint, ".")

	unsigned := parts[0] + "." + parts[1] + "."
	foreign := "eyJhbGciOiJub25lIn0." + parts[1] + "."
	withURI := func(uri string) url.Values {
		return url.Values{"id_token_hint": {hint}, "post_logout_redirect_uri": {uri}}
	}

	for name, params := range map[string]url.Values{
		"an unregistered URI":      withURI("https://evil.example/"),
		"a URI with a query added": withURI(goodbye + "?x=1"),
		"a prefix of the URI":      withURI(goodbye[:len(goodbye)-1]),
		"an encoded URI":           withURI("https://app.example/%62ye"),
		"a URI without a client":   {"post_logout_redirect_uri": {goodbye}},
		"another client":           {"id_token_hint": {hint}, "client_id": {other.ID}},
		"an unknown client":        {"client_id": {"unknown"}},
		"an unsigned hint":         {"id_token_hint": {unsigned}},
		"a foreign hint":           {"id_token_hint": {foreign}},
		"an access token as hint":  {"id_token_hint": {text(set["access_token"])}},
		"a repeated parameter":     {"client_id": {c.ID, c.ID}},
	} {
		got := w.newBrowser().get("/oauth/logout?" + params.Encode())
		wantStatus(t, name, got, http.StatusBadRequest)
		if got.location != nil {
			t.Errorf("%s: a redirect to %v, want none", name, got.location)
		}
	}
}

// TestLogoutWithLostKey shows that a logout whose hint was signed with a revoked key asks the person. It
// then redirects only to an app that client_id names, because the hint may be forged.
func TestLogoutWithLostKey(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(withLogout)
	b := w.newBrowser()
	hint := text(w.redeem(c, b.code(c)).json(t)["id_token"])
	var head struct{ Kid string }
	raw, err := base64.RawURLEncoding.DecodeString(hint[:strings.IndexByte(hint, '.')])
	must(t, err)
	must(t, json.Unmarshal(raw, &head))
	must(t, w.idp.Ring.Retire(t.Context(), head.Kid))

	for _, tt := range []struct {
		name         string
		params       []string
		wantRedirect string // "" means the page that says that the person is signed out
	}{
		{name: "only the hint", params: nil},
		{name: "without client_id", params: []string{"post_logout_redirect_uri", goodbye, "state", "x"}},
		{
			name:         "with client_id",
			params:       []string{"client_id", c.ID, "post_logout_redirect_uri", goodbye},
			wantRedirect: goodbye,
		},
	} {
		page := b.endSession(append(tt.params, "id_token_hint", hint)...)
		wantPage(t, tt.name, page, "logout-confirm")
		wantSignedIn(t, tt.name+", before the confirmation", b, c, true)
		got := b.submit(page)
		if tt.wantRedirect != "" {
			wantRedirect(t, tt.name, got, tt.wantRedirect)
		} else {
			wantPage(t, tt.name, got, "logged-out")
		}
		wantSignedIn(t, tt.name+", after the confirmation", b, c, false)
		b.code(c)
	}

	unregistered := b.endSession("client_id", c.ID, "id_token_hint", hint, "post_logout_redirect_uri", goodbye+"/x")
	wantPage(t, "an unregistered URI", unregistered, "error-page")
}

// TestLogoutByPost shows that a logout by POST does not end the login itself. The response
// redirects to a GET, because browsers send no cookies with a POST from another site.
func TestLogoutByPost(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(withLogout)
	b := w.newBrowser()
	set := w.redeem(c, b.code(c)).json(t)
	b.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

	got := b.post("/oauth/logout", url.Values{"state": {"x"}})
	wantStatus(t, "POST without a hint", got, http.StatusSeeOther)
	if got.location.Path != "/oauth/logout" {
		t.Errorf("POST without a hint redirects to %v, want /oauth/logout", got.location)
	}
	wantHeader(t, "POST without a hint", got, "Set-Cookie", "")
	info := w.userinfo(text(set["access_token"]))
	wantStatus(t, "userinfo after a POST without a hint", info, http.StatusOK)

	form := url.Values{"id_token_hint": {text(set["id_token"])}, "post_logout_redirect_uri": {goodbye}}
	wantRedirect(t, "POST with a hint", w.newBrowser().post("/oauth/logout", form), goodbye)

	german := w.newBrowser().post("/oauth/logout", url.Values{"ui_locales": {"de"}})
	wantText(t, "POST with a language", german, inGerman)
}

// TestLogoutAfterHangUp shows that a logout is completed even if the caller disconnects.
func TestLogoutAfterHangUp(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	set := w.tokens(c)
	sid := text(idClaims(t, set)["sid"])
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	must(t, w.idp.Logins.End(ctx, sid))
	w.pass(13 * time.Hour) // longer than the session store remembers that a login has ended
	if err := w.idp.Logins.Live(t.Context(), sid); err == nil {
		t.Error("an ended login is valid again")
	}
}
