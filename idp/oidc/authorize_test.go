package oidc_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/idp"
)

// TestLogin shows that the right password leads to a code, and that the browser stays signed in.
func TestLogin(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	b := w.browser()

	page := b.authorize(request(c))
	if !strings.Contains(page.body, `id="login-submit"`) {
		t.Fatalf("authorize shows no login page: %d %s", page.status, page.body)
	}

	wrong := b.logIn(page, email, "not the password")
	if wrong.status != http.StatusUnprocessableEntity ||
		!strings.Contains(wrong.body, "Email or password is wrong.") || !strings.Contains(wrong.body, email) {
		t.Errorf("wrong password: %d %s, want 422 with the error and the email", wrong.status, wrong.body)
	}

	// Case and spaces in the email address do not matter.
	got := b.logIn(wrong, " ADA@Example.com", secret)
	if got.status != http.StatusSeeOther || got.param("code") == "" || got.param("state") != "s" ||
		got.param("iss") != w.url+"/" {
		t.Errorf("login: %d to %v, want a code", got.status, got.location)
	}

	// The browser stays signed in, and a login page can be used only once.
	again := b.authorize(request(c, "state", "second"))
	if again.param("code") == "" || again.param("state") != "second" {
		t.Errorf("a second request of a signed-in browser: %d to %v, want a code", again.status, again.location)
	}

	stale := b.logIn(page, email, secret)
	if stale.status != http.StatusBadRequest {
		t.Errorf("the same login page once more: %d, want 400", stale.status)
	}
}

// TestLoginRevealsNothing shows that a failed login looks the same for existing and unknown
// accounts.
func TestLoginRevealsNothing(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	disabled := true
	bob := w.subscriber("bob@example.com")
	if _, err := w.fabric.Subscribers.Update(t.Context(), w.project.ID, bob.ID, fabricChange(disabled)); err != nil {
		t.Fatal(err)
	}

	b := w.browser()
	page := b.authorize(request(c))
	want := b.logIn(page, email, "not the password")
	for _, tt := range []struct{ email, password string }{
		{"nobody@example.com", secret}, {"bob@example.com", secret}, {"%", secret}, {"' OR 1=1--", secret},
		{email, ""}, {email, secret + "\x00"},
		{email, strings.Repeat("x", 8000)}, {strings.Repeat("x", 8000), secret},
	} {
		got := b.logIn(page, tt.email, tt.password)
		if got.status != want.status || mask(got, tt.email) != mask(want, email) {
			t.Errorf("login as %.40q: %d\n%s\nwant %d\n%s", tt.email, got.status, mask(got, tt.email),
				want.status, mask(want, email))
		}
	}
}

// mask replaces the parts of a response that differ intentionally: the email address and the
// challenge.
func mask(r reply, email string) string {
	r.body = noChallenge(r.body)
	i, j := strings.Index(r.body, `value="`+escaped(email)), 0
	if i >= 0 {
		j = i + len(`value="`) + len(escaped(email))
		return r.body[:i] + r.body[j:]
	}
	return r.body
}

// TestLoginOfAnotherBrowser shows that a login page works only in the browser that requested it.
func TestLoginOfAnotherBrowser(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	page := w.browser().authorize(request(c))
	if got := w.browser().logIn(page, email, secret); got.status != http.StatusForbidden || got.param("code") != "" {
		t.Errorf("a login page opened elsewhere: %d to %v, want 403", got.status, got.location)
	}
}

// TestLoginFromAnotherSite shows that a login form sent by another site is refused.
func TestLoginFromAnotherSite(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	b := w.browser()
	id := hiddenID.FindStringSubmatch(b.authorize(request(c)).body)[1]
	for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"} {
		form := url.Values{"id": {id}, "username": {email}, "password": {secret}}
		req, err := http.NewRequest(http.MethodPost, w.url+"/login", strings.NewReader(form.Encode()))
		must(t, err)
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set(name, value)
		if got := b.do(req); got.status != http.StatusForbidden {
			t.Errorf("login with %s: %s = %d, want 403", name, value, got.status)
		}
	}
}

// TestAuthorizeUnproven shows that errors are shown on a page, and not sent by redirect, until the
// client and its redirect URI have been verified.
func TestAuthorizeUnproven(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	native, _ := w.client(func(n *idp.Client) {
		n.Type, n.RedirectURIs = idp.Native, []string{"com.dialer.app://cb", "http://127.0.0.1/cb", "http://[::1]/cb"}
	})
	tests := []url.Values{
		request(c, "client_id", ""), request(c, "client_id", "unknown"), request(c, "client_id", "\x00"),
		request(c, "redirect_uri", ""),
		{"client_id": {c.ID, c.ID}, "redirect_uri": {callback}},
	}

	// URIs that resemble the registered one do not match.
	for _, uri := range []string{
		callback + "/../evil", callback + ".evil.example", callback + "/x", callback[:len(callback)-1],
		callback + "#x", callback + "%23x", callback + "?x=1",
		"https://app.example@evil.example/cb", "https://evil.example@app.example/cb",
		"https://a@b@app.example/cb", "HTTPS://app.example/cb",
		"https://APP.EXAMPLE/cb", "https://app.example:443/cb", "https://app.example./cb",
		"https://app.example\\@evil.example/cb", "https://app.example/c\tb",
		"https://app.example/..;/cb", "javascript:alert(1)", "data:text/html,x", "vbscript:x",
		"com.other.app://cb", "http://app.example/cb",
	} {
		tests = append(tests, request(c, "redirect_uri", uri))
	}

	// A native client's loopback address may have any port (RFC 8252, section 7.3), but nothing
	// else may differ.
	for _, uri := range []string{
		"http://127.0.0.1:99999/cb", "http://127.0.0.1:1/cb#f", "http://u@127.0.0.1:1/cb",
		"https://127.0.0.1:1/cb", "http://127.8.8.8:1/cb", "http://127.0.0.1:1/other",
		"http://localhost:1/cb", "http://127.0.0.1:01/cb", "http://127.0.0.1:1\\@evil.example/cb",
		"http://127.0.0.1.evil.example/cb", "com.dialer.app://cb2",
		"http://[127.0.0.1]/cb", "http://[[127.0.0.1]]/cb", "http://]127.0.0.1[/cb", "http://[127.0.0.1]:1/cb",
		"http://::1/cb", "http://[[::1]]/cb", "http://[::1/cb", "http://::1]/cb", "http://[::1%25lo]:1/cb",
		"http://127.0.0.1:0/cb", "http://[::1]:0/cb", "http://127.0.0.1:/cb", "http://127.0.0.1:+1/cb",
	} {
		tests = append(tests, request(native, "redirect_uri", uri))
	}

	for _, v := range tests {
		got := w.browser().authorize(v)
		if got.status != http.StatusBadRequest || got.location != nil ||
			!strings.Contains(got.body, "redirect address is not registered") {
			t.Errorf("authorize with %q: %d to %v, want 400 and no redirect", v.Get("redirect_uri"),
				got.status, got.location)
		}
	}

	// These URIs match.
	for _, uri := range []string{"http://127.0.0.1:54321/cb", "http://127.0.0.1/cb", "http://[::1]:8000/cb",
		"com.dialer.app://cb"} {
		if got := w.browser().authorize(request(native, "redirect_uri", uri)); got.status != http.StatusOK {
			t.Errorf("authorize of a native client with %q: %d, want the login page", uri, got.status)
		}
	}
}

// TestAuthorizeErrors shows that errors are sent to a verified client, with state and iss.
func TestAuthorizeErrors(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	confidential, _ := w.client(func(n *idp.Client) { n.Type, n.PKCEOptional = idp.Web, true })

	tests := []struct {
		name string
		v    url.Values
		want string
	}{
		{"no challenge", request(c, "code_challenge", ""), "invalid_request"},
		{"method plain", request(c, "code_challenge_method", "plain"), "invalid_request"},
		{"no method", request(c, "code_challenge_method", ""), "invalid_request"},
		{"method s256", request(c, "code_challenge_method", "s256"), "invalid_request"},
		{"method S999", request(c, "code_challenge_method", "S999"), "invalid_request"},
		{"challenge of 42", request(c, "code_challenge", challenge[1:]), "invalid_request"},
		{"challenge of 129", request(c, "code_challenge", strings.Repeat("a", 129)), "invalid_request"},
		{"challenge not base64url", request(c, "code_challenge", "+"+challenge[1:]), "invalid_request"},
		{"PKCE optional, method plain", request(confidential, "code_challenge_method", "plain"), "invalid_request"},
		{"PKCE optional, only the method", request(confidential, "code_challenge", ""), "invalid_request"},
		{"no response_type", request(c, "response_type", ""), "invalid_request"},
		{"token", request(c, "response_type", "token"), "unsupported_response_type"},
		{"code token, not registered", request(c, "response_type", "code token"), "unsupported_response_type"},
		{"code code", request(c, "response_type", "code code"), "unsupported_response_type"},
		{"id_token, not registered", request(c, "response_type", "id_token", "nonce", "n"), "unauthorized_client"},
		{"code code", request(c, "response_type", "code code"), "unsupported_response_type"},
		{"no scope", request(c, "scope", ""), "invalid_scope"},
		{"blank scope", request(c, "scope", "  "), "invalid_scope"},
		{"unknown scope", request(c, "scope", "openid nonsense"), "invalid_scope"},
		{"scope not registered", request(c, "scope", "openid Voice"), "invalid_scope"},
		{"many scopes", request(c, "scope", strings.Repeat("x ", 1000)), "invalid_scope"},
		{"unknown prompt", request(c, "prompt", "dance"), "invalid_request"},
		{"prompt none and login", request(c, "prompt", "none login"), "invalid_request"},
		{"prompt none without a login", request(c, "prompt", "none"), "login_required"},
		{"max_age negative", request(c, "max_age", "-1"), "invalid_request"},
		{"max_age huge", request(c, "max_age", "1000000000"), "invalid_request"},
		{"max_age not a number", request(c, "max_age", "abc"), "invalid_request"},
		{"request object", request(c, "request", "x.y.z"), "request_not_supported"},
		{"request_uri", request(c, "request_uri", "http://169.254.169.254/"), "request_uri_not_supported"},
		{"response_mode", request(c, "response_mode", "web_message"), "invalid_request"},
		{"repeated", url.Values{"client_id": {c.ID}, "redirect_uri": {callback}, "state": {"s"},
			"scope": {"openid", "email"}}, "invalid_request"},
	}

	for _, tt := range tests {
		got := w.browser().authorize(tt.v)
		if got.location == nil || !strings.HasPrefix(got.location.String(), callback+"?") &&
			!strings.HasPrefix(got.location.String(), callback+"#") {
			t.Errorf("%s: %d to %v, want a redirect to the client", tt.name, got.status, got.location)
			continue
		}
		if got.param("error") != tt.want || got.param("state") != "s" || got.param("iss") != w.url+"/" ||
			got.param("code") != "" {
			t.Errorf("%s: redirect with %v, want error=%s", tt.name, got.parameters(), tt.want)
		}
	}
}

// TestAuthorizeStateIsExact shows that a state of up to 4096 bytes is returned unchanged.
func TestAuthorizeStateIsExact(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	b := w.browser()
	b.code(c)

	for _, state := range []string{`"><script>`, "a\r\nX-Evil: 1", "\x00", "\u202e\u2066", "a b+c%20&=",
		strings.Repeat("s", 4096)} {
		got := b.authorize(request(c, "state", state))
		if got.param("state") != state || got.header.Get("X-Evil") != "" {
			t.Errorf("state %.20q is returned as %.20q", state, got.param("state"))
		}
	}

	if got := b.authorize(request(c, "state", strings.Repeat("s", 4097))); got.param("error") != "invalid_request" {
		t.Errorf("a state of 4097 bytes: %v, want invalid_request", got.location)
	}
	if got := b.get("/login/oauth/authorize?" + strings.Repeat("x",
		20_000)); got.status != http.StatusRequestURITooLong {
		t.Errorf("a query of 20,000 bytes: %d, want 414", got.status)
	}
}

// TestAuthorizeByPost shows that an authorization request may be sent by POST.
func TestAuthorizeByPost(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	b := w.browser()
	if got := b.logIn(b.post("/login/oauth/authorize", request(c)), email, secret); got.param("code") == "" {
		t.Errorf("login after a POST: %d %v, want a code", got.status, got.location)
	}
}

// TestPrompts shows that prompt and max_age require a new login, or an error with prompt=none.
func TestPrompts(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	b := w.browser()
	b.code(c)

	if got := b.authorize(request(c, "prompt", "none")); got.param("code") == "" {
		t.Errorf("prompt=none when signed in: %v, want a code", got.location)
	}

	// Each of these requests needs a new login although the browser is signed in.
	w.pass(10 * time.Second)
	for _, pair := range [][2]string{{"prompt", "login"}, {"max_age", "0"}, {"max_age", "5"},
		{"prompt", "select_account"}} {
		page := b.authorize(request(c, pair[0], pair[1]))
		if page.status != http.StatusOK {
			t.Fatalf("%v: no login page but %d to %v, want 200", pair, page.status, page.location)
		}
		w.pass(10 * time.Second)
		if got := b.logIn(page, email, secret); got.param("code") == "" {
			t.Errorf("%v: login returns %v, want a code", pair, got.location)
		}
		w.pass(10 * time.Second)
	}

	// The last login was ten seconds ago.
	if got := b.authorize(request(c, "max_age", "1000")); got.param("code") == "" {
		t.Errorf("max_age=1000: %v, want a code", got.location)
	}
	if got := b.authorize(request(c, "prompt", "none", "max_age", "5")); got.param("error") != "login_required" {
		t.Errorf("prompt=none with max_age=5: %v, want login_required", got.location)
	}
}

// TestBrowserSessionEnds shows that a browser session ends after 12 idle hours, and after seven
// days.
func TestBrowserSessionEnds(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	b := w.browser()
	b.code(c)
	for range 13 { // each visit extends the idle limit
		w.pass(11 * time.Hour)
		if got := b.authorize(request(c)); got.param("code") == "" {
			t.Fatalf("a visit within 12 hours: %d %v, want a code", got.status, got.location)
		}
	}

	w.pass(26 * time.Hour) // 169 hours since the login
	if got := b.authorize(request(c)); got.status != http.StatusOK {
		t.Errorf("a visit after seven days: %d, want the login page", got.status)
	}

	b.code(c)
	w.pass(13 * time.Hour)
	if got := b.authorize(request(c)); got.status != http.StatusOK {
		t.Errorf("a visit after 13 idle hours: %d, want the login page", got.status)
	}
}

// TestConsent shows when people are asked for their consent, and from which browser an answer is
// accepted.
func TestConsent(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(func(n *idp.Client) { n.FirstParty = false })
	b := w.browser()

	page := b.logIn(b.authorize(request(c)), email, secret)
	if !strings.Contains(page.body, `id="consent-allow"`) {
		t.Fatalf("no consent page: %d %s", page.status, page.body)
	}

	// Only the browser that showed the page may answer.
	if got := b.authorize(request(c, "prompt", "none")); got.param("error") != "consent_required" {
		t.Errorf("prompt=none before consent: %v, want consent_required", got.location)
	}
	if got := w.browser().consent(page, "allow"); got.status != http.StatusForbidden {
		t.Errorf("consent in another browser: %d, want 403", got.status)
	}

	if got := b.consent(page, "deny"); got.param("error") != "access_denied" || got.param("state") != "s" {
		t.Errorf("deny: %v, want access_denied", got.location)
	}

	// A consent covers later requests with the same scope. It does not cover requests with a wider
	// scope or with prompt=consent.
	page = b.authorize(request(c))
	if got := b.consent(page, "allow"); got.param("code") == "" {
		t.Errorf("allow: %v, want a code", got.location)
	}
	if got := b.authorize(request(c)); got.param("code") == "" {
		t.Errorf("the same scope again: %d %v, want a code", got.status, got.location)
	}
	if got := b.authorize(request(c, "scope", "openid email")); got.status != http.StatusOK {
		t.Errorf("a wider scope: %d %v, want the consent page", got.status, got.location)
	}

	page = b.authorize(request(c, "prompt", "consent"))
	if page.status != http.StatusOK {
		t.Errorf("prompt=consent: %d %v, want the consent page", page.status, page.location)
	}

	// A consent page shown to ada cannot be answered after bob has signed in using another tab.
	w.subscriber("bob@example.com")
	b.logIn(b.authorize(request(c, "prompt", "login")), "bob@example.com", secret)
	if got := b.consent(page, "allow"); got.status != http.StatusBadRequest {
		t.Errorf("ada's page answered by bob's login: %d %v, want 400", got.status, got.location)
	}
}

// TestIDTokenHint shows that a hint restricts who may answer a request.
func TestIDTokenHint(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	other, _ := w.client(nil)
	w.subscriber("bob@example.com")
	ada := text(w.tokens(c)["id_token"])

	b := w.browser()
	b.logIn(b.authorize(request(c)), "bob@example.com", secret)

	// Only a valid hint issued to the same client counts.
	if got := b.authorize(request(c, "prompt", "none", "id_token_hint", ada)); got.param("error") != "login_required" {
		t.Errorf("prompt=none with ada's hint in bob's browser: %v, want login_required",
			got.location)
	}
	if got := b.authorize(request(c, "prompt", "none", "id_token_hint", "garbage")); got.param("code") == "" {
		t.Errorf("prompt=none with an invalid hint: %v, want a code", got.location)
	}
	if got := b.authorize(request(other, "prompt", "none", "id_token_hint", ada)); got.param("code") == "" {
		t.Errorf("prompt=none with another client's hint: %v, want a code", got.location)
	}

	// A login as another subscriber fails.
	page := b.authorize(request(c, "id_token_hint", ada))
	if got := b.logIn(page, "bob@example.com", secret); got.param("error") != "login_required" {
		t.Errorf("bob signs in for a request with ada's hint: %v, want login_required",
			got.location)
	}
	page = b.authorize(request(c, "id_token_hint", ada))
	if got := b.logIn(page, email, secret); got.param("code") == "" {
		t.Errorf("ada signs in: %d %v, want a code", got.status, got.location)
	}
	if got := b.authorize(request(c, "prompt", "none", "id_token_hint", ada)); got.param("code") == "" {
		t.Errorf("prompt=none with ada's hint in her browser: %v, want a code", got.location)
	}
}
