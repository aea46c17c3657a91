package attack

import (
	"net/url"
	"strings"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// TestS06LogoutRedirect shows that a logout redirects only with a valid hint, and only to a URI
// that is registered for the client in this hint. A refused logout does not end the login.
func TestS06LogoutRedirect(t *testing.T) {
	const home = "https://rp.example/bye"
	p := project(t)
	c := p.NewClient(t, "spa", "--first-party", "--post-logout-redirect-uri", home)
	other := p.NewClient(t, "spa", "--first-party", "--post-logout-redirect-uri", "https://other.example/bye")
	sub := p.NewSubscriber(t)
	tokens, b := c.SignIn(t, sub, loginScope)
	theirs := other.SignInWith(t, b, sub, loginScope)

	out := func(b *harness.Browser, hint, uri, state string) harness.Page {
		return b.Open(t, "/oauth/logout?"+
			url.Values{"id_token_hint": {hint}, "post_logout_redirect_uri": {uri}, "state": {state}}.Encode())
	}

	for _, uri := range []string{
		"https://evil.example/", home + "/x", home + "?x", home + "%2f", "https://rp.example/",
		"https://rp.example/by", "HTTPS://rp.example/bye",
		"javascript:alert(1)", "https://other.example/bye",
	} {
		out(b, tokens.IDToken, uri, "s").WantErrorPage(t, 400)
	}

	out(b, theirs.IDToken, home, "s").WantErrorPage(t, 400)
	forged := unsigned(map[string]any{"iss": p.Issuer(), "aud": c.ID, "sub": sub.ID})
	for _, hint := range []string{forged, tokens.IDToken[:len(tokens.IDToken)-4] + "AAAA", "x", tokens.AccessToken} {
		if page := out(b, hint, home, "s"); page.Left != nil {
			t.Errorf("with the hint %q, the logout leads to %s, want no redirect", hint, page.Left)
		}
	}

	if page := b.Open(t, "/oauth/logout?post_logout_redirect_uri="+url.QueryEscape(home)); page.Left != nil {
		t.Errorf("a logout without a hint leads to %s, want no redirect", page.Left)
	}
	if silent := b.Open(t, c.NewFlow("openid").With("prompt", "none").URL()).Callback(t); silent.Get("code") == "" {
		t.Errorf("a refused logout ended the login: %v", silent)
	}

	state := "a\r\nX-Evil: 1\r\n<b>"
	page := out(b, tokens.IDToken, home, state)
	if page.Left == nil {
		t.Fatalf("the logout showed a page with the status %d, want a redirect to %s", page.Status, home)
	}
	if !strings.HasPrefix(page.Left.String(), home+"?") {
		t.Errorf("the logout leads to %s, want %s", page.Left, home)
	}
	if got := page.Left.Query().Get("state"); got != state {
		t.Errorf("the logout returned the state %q, want %q", got, state)
	}
	if got := page.Header.Get("X-Evil"); got != "" {
		t.Errorf("the state added the header X-Evil: %q", got)
	}
}

// TestS06Confirmation shows that a logout without a hint asks for confirmation first.
func TestS06Confirmation(t *testing.T) {
	p := project(t)
	c := p.NewClient(t, "spa", "--first-party")
	_, b := c.SignIn(t, p.NewSubscriber(t), loginScope)
	page := b.Open(t, "/oauth/logout")
	if !page.Has("logout-confirm") {
		t.Fatalf("a logout without a hint returned %d %s, want a page with logout-confirm", page.Status,
			page.Body)
	}

	b.Open(t, c.NewFlow("openid").With("prompt", "none").URL()).Callback(t)
	b.Submit(t, page, "logout-confirm", nil, harness.Header("Sec-Fetch-Site", "cross-site")).Want(t, 403)
	if !b.Submit(t, page, "logout-confirm", nil).Has("logged-out") {
		t.Errorf("the page after the confirmed logout has no element logged-out")
	}
	b.Open(t, c.NewFlow("openid").With("prompt", "none").URL()).WantCallbackError(t, "login_required")
}

// TestS07Replay shows that copied cookies and tokens no longer work after a logout.
func TestS07Replay(t *testing.T) {
	const home = "https://rp.example/bye"
	p := project(t)
	sub := p.NewSubscriber(t)
	for _, kind := range []string{"fabric", "jwt"} {
		t.Run(kind, func(t *testing.T) {
			c := p.NewClient(t, "spa", "--first-party", "--post-logout-redirect-uri", home, "--access-token", kind)
			tokens, b := c.SignIn(t, sub, loginScope)
			thief := copyCookies(t, p, b)
			stolen := thief.Open(t, c.NewFlow("openid").With("prompt", "none").URL()).Callback(t)
			if stolen.Get("code") == "" {
				t.Fatalf("before the logout, a login with copied cookies returned %v, want a code", stolen)
			}
			logout := url.Values{"id_token_hint": {tokens.IDToken}, "post_logout_redirect_uri": {home}}
			b.Open(t, "/oauth/logout?"+logout.Encode()).Callback(t)

			thief.Open(t, c.NewFlow("openid").With("prompt", "none").URL()).WantCallbackError(t, "login_required")
			for _, path := range []string{"/oauth/userinfo", "/subscriber/info", "/api/fabric/addresses"} {
				harness.WithinASecond(t, path+" to refuse a token of an ended login", func() error {
					return p.Get(t, path, harness.Bearer(tokens.AccessToken)).StatusIs(401)
				})
			}
			c.Refresh(t, tokens.RefreshToken).WantError(t, 400, "invalid_grant")
		})
	}
}

// TestS07NewPassword shows that a new password revokes all earlier tokens and logins.
func TestS07NewPassword(t *testing.T) {
	p := project(t)
	c := p.NewClient(t, "spa", "--first-party", "--access-token", "fabric")
	sub := p.NewSubscriber(t)
	tokens, b := c.SignIn(t, sub, loginScope)
	path := "/api/fabric/resources/subscribers/" + sub.ID
	change := harness.JSON(map[string]string{"password": "another-long-word"})
	p.Do(t, "PUT", path, p.Basic(), change).WantUnauthorized(t) // this key lacks the scope Management
	p.Do(t, "PUT", path, harness.Basic(p.ID, p.NewKey(t, "Voice", "Management")), change).Want(t, 200)

	harness.WithinASecond(t, "a token from before the new password to be refused", func() error {
		return p.Get(t, "/subscriber/info", harness.Bearer(tokens.AccessToken)).StatusIs(401)
	})
	c.Refresh(t, tokens.RefreshToken).WantError(t, 400, "invalid_grant")
	b.Open(t, c.NewFlow("openid").With("prompt", "none").URL()).WantCallbackError(t, "login_required")

	sub.Password = "another-long-word"
	c.SignIn(t, sub, loginScope)
}
