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
	for name, b := range map[string]*harness.Browser{
		"a browser without cookies": c.Browser(),
		"a different browser":       victim,
	} {
		got := b.Submit(t, page, "login-submit", map[string]string{"username": sub.Email, "password": sub.Password})
		if got.Left != nil {
			t.Errorf("%s was sent to %s after a login that it did not begin", name, got.Left)
		}
		if got.Status != 403 {
			t.Errorf("a login that %s did not begin returned the status %d, want 403", name, got.Status)
		}
		b.Open(t, c.NewFlow("openid").With("prompt", "none").URL()).WantCallbackError(t, "login_required")
	}
}

// TestS02Tokens posts forms from the right origin, but without the page's token or with another
// browser's token. All forms are refused, and no login ends.
func TestS02Tokens(t *testing.T) {
	p := project(t)
	c := p.NewClient(t, "spa", "--first-party")
	sub := p.NewSubscriber(t)
	_, mine := c.SignIn(t, sub, loginScope)
	_, theirs := c.SignIn(t, p.NewSubscriber(t), loginScope)

	own := harness.Header("Origin", strings.TrimSuffix(p.AuthURL, "/"))
	account := "/account?project=" + p.ID
	for button, path := range map[string]string{
		"logout-confirm":   "/logout",
		"device-submit":    "/device",
		"profile-submit":   account,
		"sessions-end-all": account,
		"session-end-0":    account,
	} {
		page, foreign := mine.Open(t, path), theirs.Open(t, path)
		if !page.Has(button) {
			t.Fatalf("%s has no #%s: %d %s", path, button, page.Status, page.Body)
		}
		theirs.Submit(t, page, button, map[string]string{}, own).Want(t, 403)
		mine.Submit(t, foreign, button, map[string]string{}, own).Want(t, 403)
	}

	sameOrigin := harness.Header("Sec-Fetch-Site", "same-origin")
	for _, path := range []string{"/login", "/accounts", "/consent", "/device", "/logout"} {
		for name, form := range map[string]url.Values{
			"no fields": {},
			"no token":  {"username": {sub.Email}, "password": {sub.Password}, "answer": {"allow"}},
		} {
			a := p.Post(t, path, harness.Form(form), own, sameOrigin)
			if a.Status != 403 {
				t.Errorf("POST %s with %s = %d, want 403", path, name, a.Status)
			}
			if cookies := a.Header["Set-Cookie"]; len(cookies) != 0 {
				t.Errorf("POST %s with %s returned the cookies %v, want none", path, name, cookies)
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
			t.Errorf("%s: the browser was sent to %s, want login_required", name, a.Header.Get("Location"))
		}
	}

	if len(good) < 2 {
		t.Fatalf("the browser has the cookies %v, want at least two", good)
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

// wantPolicy checks that a page's Content-Security-Policy contains the given directives, and
// permits neither inline scripts nor eval.
func wantPolicy(t *testing.T, name string, page harness.Page, directives ...string) {
	t.Helper()
	csp := page.Header.Get("Content-Security-Policy")
	for _, directive := range directives {
		if !strings.Contains(csp, directive) {
			t.Errorf("%s: Content-Security-Policy = %q, want %s in it", name, csp, directive)
		}
	}
	for _, unsafe := range []string{"unsafe-inline", "unsafe-eval"} {
		if strings.Contains(csp, unsafe) {
			t.Errorf("%s: Content-Security-Policy = %q, want no %s", name, csp, unsafe)
		}
	}
}

// TestS08Headers checks the security headers of the pages of a login, of the account page and of an
// error page.
func TestS08Headers(t *testing.T) {
	p := project(t)
	c := p.NewClient(t, "spa")
	sub := p.NewSubscriber(t)

	// Visit the pages.
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
		wantPolicy(t, name, page, "frame-ancestors 'none'", "default-src")
		for field, want := range map[string]string{
			"X-Frame-Options":             "DENY",
			"X-Content-Type-Options":      "nosniff",
			"Referrer-Policy":             "same-origin",
			"Cache-Control":               "no-store",
			"Access-Control-Allow-Origin": "",
			"Server":                      "",
		} {
			if got := page.Header.Get(field); !strings.EqualFold(got, want) {
				t.Errorf("%s: %s = %q, want %q", name, field, got, want)
			}
		}
	}

	if got := account.Header.Get("Cross-Origin-Opener-Policy"); got != "same-origin" {
		t.Errorf("/account has Cross-Origin-Opener-Policy %q, want same-origin", got)
	}

	// Only the page that ends a prompt=none request may be in a frame, and only in its own app's
	// frame.
	if !back.Has("return-submit") {
		t.Errorf("a prompt=none request with form_post returned %d without #return-submit", back.Status)
	}
	wantPolicy(t, "form_post", back, "frame-ancestors https://rp.example;", "default-src 'none'")
	if csp := back.Header.Get("Content-Security-Policy"); strings.Contains(csp, "unsafe") {
		t.Errorf("form_post: Content-Security-Policy = %q, want nothing unsafe", csp)
	}

	for _, page := range []harness.Page{login, again, consent, accounts} {
		if got := page.Header.Get("Cross-Origin-Opener-Policy"); got != "" {
			t.Errorf("%s has Cross-Origin-Opener-Policy %q, want none, because popup logins need their opener",
				page.URL.Path, got)
		}
	}
}
