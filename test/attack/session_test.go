package attack

import (
	"net/url"
	"strings"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// TestS02LoginAcrossSites shows that the login form cannot be posted from another site or origin.
func TestS02LoginAcrossSites(t *testing.T) {
	p := project(t)
	c := p.NewClient(t, "spa", "--first-party")
	sub := p.NewSubscriber(t)
	fields := map[string]string{"username": sub.Email, "password": sub.Password}
	tests := map[string][]harness.Option{
		"from a different site":             {harness.Header("Sec-Fetch-Site", "cross-site")},
		"from a different host of the site": {harness.Header("Sec-Fetch-Site", "same-site")},
		"Origin: null":                      {harness.Header("Origin", "null"), harness.Header("Sec-Fetch-Site", "")},
		"another origin, an old browser": {harness.Header("Origin", "https://evil.example"),
			harness.Header("Sec-Fetch-Site", "")},
		"our host with a different scheme": {harness.Header(
			"Origin", "https://"+strings.TrimPrefix(p.PublicURL, "http://")), harness.Header("Sec-Fetch-Site", "")},
		"our host with a prefix": {harness.Header(
			"Origin", "http://x."+strings.TrimPrefix(p.PublicURL, "http://")), harness.Header("Sec-Fetch-Site", "")},
	}

	for name, opts := range tests {
		t.Run(name, func(t *testing.T) {
			b := c.Browser()
			page := b.Submit(t, b.Open(t, c.NewFlow("openid").URL()), "login-submit", fields, opts...)
			page.Want(t, 403)
			b.Open(t, c.NewFlow("openid").With("prompt", "none").URL()).WantCallbackError(t, "login_required")
		})
	}
}

// TestS02ForeignRequest shows that a browser cannot complete a login that another browser began.
func TestS02ForeignRequest(t *testing.T) {
	p := project(t)
	c := p.NewClient(t, "spa", "--first-party")
	sub := p.NewSubscriber(t)

	attacker, victim := c.Browser(), c.Browser()
	page := attacker.Open(t, c.NewFlow("openid").URL())
	victim.Open(t, c.NewFlow("openid").URL()) // the victim gets its own cookies
	for name, b := range map[string]*harness.Browser{"a browser without cookies": c.Browser(),
		"another browser": victim} {
		got := b.Submit(t, page, "login-submit", map[string]string{"username": sub.Email, "password": sub.Password})
		if got.Left != nil || got.Status < 400 {
			t.Errorf("%s completes a login that it did not begin: %d to %v", name, got.Status, got.Left)
		}
		if got.Status != 403 {
			t.Errorf("%s: %d, want 403", name, got.Status)
		}
		b.Open(t, c.NewFlow("openid").With("prompt", "none").URL()).WantCallbackError(t, "login_required")
	}
}

// TestS02Tokens posts forms from the right origin, without the page's token or with the token of
// another browser. All of them are refused and no login ends.
func TestS02Tokens(t *testing.T) {
	p := project(t)
	c := p.NewClient(t, "spa", "--first-party")
	sub := p.NewSubscriber(t)
	_, mine := c.SignIn(t, sub, loginScope)
	_, theirs := c.SignIn(t, p.NewSubscriber(t), loginScope)

	own := harness.Header("Origin", strings.TrimSuffix(p.AuthURL, "/"))
	account := "/account?project=" + p.ID
	for button, path := range map[string]string{"logout-confirm": "/logout", "device-submit": "/device",
		"profile-submit": account, "sessions-end-all": account, "session-end-0": account} {
		page, foreign := mine.Open(t, path), theirs.Open(t, path)
		if !page.Has(button) {
			t.Fatalf("%s has no #%s: %d %s", path, button, page.Status, page.Body)
		}
		theirs.Submit(t, page, button, map[string]string{}, own).Want(t, 403)
		mine.Submit(t, foreign, button, map[string]string{}, own).Want(t, 403)
	}

	for _, path := range []string{"/login", "/accounts", "/consent", "/device", "/logout"} {
		for name, form := range map[string]url.Values{"nothing": {},
			"no token": {"username": {sub.Email}, "password": {sub.Password}, "answer": {"allow"}}} {
			if got := p.Post(t, path, harness.Form(form), own,
				harness.Header("Sec-Fetch-Site", "same-origin")); got.Status != 403 ||
				len(got.Header["Set-Cookie"]) != 0 {
				t.Errorf("%s with %s: %d %v, want 403 and no cookie", path, name, got.Status,
					got.Header["Set-Cookie"])
			}
		}
	}

	mine.Open(t, c.NewFlow("openid").With("prompt", "none").URL()).Callback(t)
	theirs.Open(t, c.NewFlow("openid").With("prompt", "none").URL()).Callback(t)
}

// TestS04Cookies shows that cookies that are altered, swapped, duplicated, too large or too many do
// not sign anybody in.
func TestS04Cookies(t *testing.T) {
	p := project(t)
	c := p.NewClient(t, "spa", "--first-party")
	_, b := c.SignIn(t, p.NewSubscriber(t), loginScope)
	u, err := url.Parse(p.PublicURL)
	if err != nil {
		t.Fatal(err)
	}

	silent := strings.TrimPrefix(c.NewFlow("openid").With("prompt", "none").URL(), strings.TrimSuffix(p.AuthURL, "/"))
	good := make(map[string]string)
	for _, ck := range b.Jar.Cookies(u) {
		good[ck.Name] = ck.Value
	}

	ask := func(name, header string, statuses ...int) {
		t.Helper()
		a := p.Get(t, silent, harness.Header("Cookie", header))
		a.Want(t, statuses...)
		if a.Status == 303 && !strings.Contains(a.Header.Get("Location"), "login_required") {
			t.Errorf("%s: the browser is sent to %s, want login_required", name, a.Header.Get("Location"))
		}
	}

	if len(good) < 2 {
		t.Fatalf("the browser has the cookies %v, want two at least", good)
	}
	var names []string
	for name := range good {
		names = append(names, name)
	}

	for name, value := range good {
		for _, i := range []int{0, len(value) / 2, len(value) - 1} {
			ask("flipped", name+"="+value[:i]+string(value[i]^1)+value[i+1:], 303)
		}
	}

	ask("swapped", names[0]+"="+good[names[1]]+"; "+names[1]+"="+good[names[0]], 303)
	for name := range good {
		ask("twice", name+"="+good[name]+"; "+name+"="+good[name], 303)
		ask("huge", name+"="+strings.Repeat("A", 16<<10), 303, 431)
	}
	ask("200 copies", strings.Repeat("__Host-selvage=A; ", 200), 303, 431)
}

// TestS02Fixation shows that cookies from before a login are not valid after it.
func TestS02Fixation(t *testing.T) {
	p := project(t)
	c := p.NewClient(t, "spa", "--first-party")
	b := c.Browser()
	page := b.Open(t, c.NewFlow("openid").URL())
	before := copyCookies(t, p, b)
	sub := p.NewSubscriber(t)
	b.Submit(t, page, "login-submit", map[string]string{"username": sub.Email, "password": sub.Password}).Callback(t)
	before.Open(t, c.NewFlow("openid").With("prompt", "none").URL()).WantCallbackError(t, "login_required")
}

// copyCookies returns another browser with the current cookies of b.
func copyCookies(t *testing.T, p *harness.Project, b *harness.Browser) *harness.Browser {
	t.Helper()
	u, err := url.Parse(p.PublicURL)
	if err != nil {
		t.Fatal(err)
	}
	thief := p.Browser()
	thief.Jar.SetCookies(u, b.Jar.Cookies(u))
	return thief
}

// TestS06LogoutRedirect shows that a logout redirects only to a URI that is registered for the
// client in a valid hint. A refused logout does not end the login.
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
			t.Errorf("a hint without a valid signature sends the browser to %s", page.Left)
		}
	}

	if page := b.Open(t, "/oauth/logout?post_logout_redirect_uri="+url.QueryEscape(home)); page.Left != nil {
		t.Errorf("a logout without a hint sends the browser to %s", page.Left)
	}
	if silent := b.Open(t, c.NewFlow("openid").With("prompt", "none").URL()).Callback(t); silent.Get("code") == "" {
		t.Errorf("a refused logout ended the login: %v", silent)
	}

	state := "a\r\nX-Evil: 1\r\n<b>"
	page := out(b, tokens.IDToken, home, state)
	if page.Left == nil || page.Left.Query().Get("state") != state || page.Header.Get("X-Evil") != "" ||
		!strings.HasPrefix(page.Left.String(), home+"?") {
		t.Errorf("the logout leads to %v, want %s with the same state", page.Left, home)
	}
}

// TestS06Confirmation shows that a logout without a hint asks for confirmation first.
func TestS06Confirmation(t *testing.T) {
	p := project(t)
	c := p.NewClient(t, "spa", "--first-party")
	_, b := c.SignIn(t, p.NewSubscriber(t), loginScope)
	page := b.Open(t, "/oauth/logout")
	if !page.Has("logout-confirm") {
		t.Fatalf("a logout without a hint = %d %s, want #logout-confirm", page.Status, page.Body)
	}

	b.Open(t, c.NewFlow("openid").With("prompt", "none").URL()).Callback(t)
	b.Submit(t, page, "logout-confirm", nil, harness.Header("Sec-Fetch-Site", "cross-site")).Want(t, 403)
	if !b.Submit(t, page, "logout-confirm", nil).Has("logged-out") {
		t.Errorf("the confirmed logout shows no #logged-out")
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
			if stolen := thief.Open(t, c.NewFlow("openid").With("prompt", "none").URL()).Callback(
				t); stolen.Get("code") == "" {
				t.Fatalf("the copied cookies do not work before the logout: %v", stolen)
			}
			b.Open(t, "/oauth/logout?"+url.Values{"id_token_hint": {tokens.IDToken},
				"post_logout_redirect_uri": {home}}.Encode()).Callback(t)

			thief.Open(t, c.NewFlow("openid").With("prompt", "none").URL()).WantCallbackError(t, "login_required")
			for _, path := range []string{"/oauth/userinfo", "/subscriber/info", "/api/fabric/addresses"} {
				harness.WithinASecond(t, path+" with a token of an ended login", func() error {
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
	path, change := "/api/fabric/resources/subscribers/"+sub.ID,
		harness.JSON(map[string]string{"password": "another-long-word"})
	p.Do(t, "PUT", path, p.Basic(), change).WantUnauthorized(t) // this key lacks Management
	p.Do(t, "PUT", path, harness.Basic(p.ID, p.NewKey(t, "Voice", "Management")), change).Want(t, 200)

	harness.WithinASecond(t, "a token from before the new password", func() error {
		return p.Get(t, "/subscriber/info", harness.Bearer(tokens.AccessToken)).StatusIs(401)
	})
	c.Refresh(t, tokens.RefreshToken).WantError(t, 400, "invalid_grant")
	b.Open(t, c.NewFlow("openid").With("prompt", "none").URL()).WantCallbackError(t, "login_required")

	sub.Password = "another-long-word"
	c.SignIn(t, sub, loginScope)
}

// TestS08Headers checks the security headers of every page.
func TestS08Headers(t *testing.T) {
	p := project(t)
	c := p.NewClient(t, "spa")
	sub := p.NewSubscriber(t)

	// Visit every kind of page.
	b := c.Browser()
	login := b.Open(t, c.NewFlow("openid").URL())
	consent := b.Submit(t, login, "login-submit", map[string]string{"username": sub.Email, "password": sub.Password})
	wrong := p.Browser()
	again := wrong.Submit(t, wrong.Open(t, c.NewFlow("openid").URL()), "login-submit",
		map[string]string{"username": sub.Email, "password": "x"})
	accounts := b.Open(t, c.NewFlow("openid").With("prompt", "select_account").URL())
	if !accounts.Has("account-0") {
		t.Fatalf("prompt=select_account = %d %s, want #account-0", accounts.Status, accounts.Body)
	}

	back := b.Open(t, c.NewFlow("openid").With("response_mode", "form_post").With("prompt", "none").URL())
	logout := b.Open(t, "/oauth/logout")
	fault := b.Open(t, "/login/oauth/authorize")
	account := b.Open(t, "/account?project="+p.ID)
	if !account.Has("sessions-end-all") {
		t.Fatalf("/account = %d %s, want #sessions-end-all", account.Status, account.Body)
	}

	for name, page := range map[string]harness.Page{"login": login, "login again": again, "consent": consent,
		"accounts": accounts, "logout": logout, "account": account, "error": fault} {
		h := page.Header
		csp := h.Get("Content-Security-Policy")
		if strings.Contains(csp, "unsafe-inline") || strings.Contains(csp, "unsafe-eval") ||
			!strings.Contains(csp, "frame-ancestors 'none'") || !strings.Contains(csp, "default-src") {
			t.Errorf("%s: Content-Security-Policy = %q, want nothing unsafe and no frames", name, csp)
		}

		for field, want := range map[string]string{"X-Frame-Options": "DENY",
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin", "Cache-Control": "no-store"} {
			if got := h.Get(field); !strings.EqualFold(got, want) {
				t.Errorf("%s: %s = %q, want %q", name, field, got, want)
			}
		}

		if h.Get("Access-Control-Allow-Origin") != "" || h.Get("Server") != "" {
			t.Errorf("%s: the headers are %v, want no Access-Control-Allow-Origin and no Server", name, h)
		}
	}

	if got := account.Header.Get("Cross-Origin-Opener-Policy"); got != "same-origin" {
		t.Errorf("/account has Cross-Origin-Opener-Policy %q, want same-origin", got)
	}

	// Only the page that ends a prompt=none request may be in a frame, and only in a frame of its
	// app.
	csp := back.Header.Get("Content-Security-Policy")
	if !back.Has("return-submit") || !strings.Contains(csp, "frame-ancestors https://rp.example;") ||
		strings.Contains(csp, "unsafe") || !strings.Contains(csp, "default-src 'none'") {
		t.Errorf("form_post of a prompt=none request: %d with Content-Security-Policy %q", back.Status, csp)
	}

	for _, page := range []harness.Page{login, again, consent, accounts} {
		if got := page.Header.Get("Cross-Origin-Opener-Policy"); got != "" {
			t.Errorf("%s has Cross-Origin-Opener-Policy %q: popup logins need their opener", page.URL.Path, got)
		}
	}
}
