package oidc_test

import (
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
)

// TestLogin shows that the right password leads to a code, and that the browser stays signed in.
func TestLogin(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	b := w.newBrowser()

	page := b.authorize(request(c))
	wantText(t, "the login page", page, `id="login-submit"`)
	wrong := b.logIn(page, email, "not the password")
	wantStatus(t, "a wrong password", wrong, http.StatusUnprocessableEntity)
	wantText(t, "a wrong password", wrong, "Email or password is wrong.", email)

	// Case and spaces in the email address do not matter.
	got := b.logIn(wrong, " ADA@Example.com", secret)
	wantStatus(t, "the right password", got, http.StatusSeeOther)
	wantCode(t, "the right password", got)
	wantParam(t, "the right password", got, "state", "s")
	wantParam(t, "the right password", got, "iss", w.url+"/")

	// The browser stays signed in, and a login page can be used only once.
	again := b.authorize(request(c, "state", "second"))
	wantCode(t, "a second request of a signed-in browser", again)
	wantParam(t, "a second request of a signed-in browser", again, "state", "second")
	stale := b.logIn(page, email, secret)
	wantStatus(t, "the same login page once more", stale, http.StatusBadRequest)
}

// TestLoginRevealsNothing shows that a failed login looks the same for existing and unknown
// accounts.
func TestLoginRevealsNothing(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	bob := w.subscriber("bob@example.com")
	disable := fabric.SubscriberInput{Disabled: new(true)}
	_, err := w.fabric.Subscribers.Update(t.Context(), w.project.ID, bob.ID, disable)
	must(t, err)

	b := w.newBrowser()
	page := b.authorize(request(c))
	want := b.logIn(page, email, "not the password")
	for _, tt := range []struct{ email, password string }{
		{"nobody@example.com", secret},
		{"bob@example.com", secret},
		{"%", secret},
		{"' OR 1=1--", secret},
		{strings.Repeat("x", 8000), secret},
		{email, ""},
		{email, secret + "\x00"},
		{email, strings.Repeat("x", 8000)},
	} {
		got := b.logIn(page, tt.email, tt.password)
		wantStatus(t, "a login as "+tt.email, got, want.status)
		if body, want := mask(got, tt.email), mask(want, email); body != want {
			t.Errorf("login as %.40q: the page is\n%s\nwant\n%s", tt.email, body, want)
		}
	}
}

// mask removes the parts of a page that differ intentionally: the email address and the challenge.
func mask(page reply, email string) string {
	field := `value="` + template.HTMLEscapeString(email)
	return strings.Replace(noChallenge(page.body), field, "", 1)
}

// TestLoginOfAnotherBrowser shows that a login page works only in the browser that requested it.
func TestLoginOfAnotherBrowser(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	page := w.newBrowser().authorize(request(c))
	got := w.newBrowser().logIn(page, email, secret)
	wantStatus(t, "a login page opened elsewhere", got, http.StatusForbidden)
	wantParam(t, "a login page opened elsewhere", got, "code", "")
}

// TestLoginFromAnotherSite shows that a login form sent by another site is refused.
func TestLoginFromAnotherSite(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	b := w.newBrowser()
	id := hiddenID.FindStringSubmatch(b.authorize(request(c)).body)[1]
	for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"} {
		form := url.Values{"id": {id}, "username": {email}, "password": {secret}}
		req, err := http.NewRequest(http.MethodPost, w.url+"/login", strings.NewReader(form.Encode()))
		must(t, err)
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set(name, value)
		wantStatus(t, "a login with "+name+": "+value, b.do(req), http.StatusForbidden)
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
		request(c, "client_id", ""),
		request(c, "client_id", "unknown"),
		request(c, "client_id", "\x00"),
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

	for _, params := range tests {
		got := w.newBrowser().authorize(params)
		name := "a request with the URI " + params.Get("redirect_uri")
		wantStatus(t, name, got, http.StatusBadRequest)
		wantText(t, name, got, "redirect address is not registered")
		if got.location != nil {
			t.Errorf("%s redirects to %v, want a page", name, got.location)
		}
	}

	// These URIs match.
	for _, uri := range []string{
		"http://127.0.0.1:54321/cb", "http://127.0.0.1/cb", "http://[::1]:8000/cb", "com.dialer.app://cb",
	} {
		page := w.newBrowser().authorize(request(native, "redirect_uri", uri))
		wantStatus(t, "a native client with the URI "+uri, page, http.StatusOK)
	}
}

// TestAuthorizeErrors shows that errors are sent to a verified client, with state and iss.
func TestAuthorizeErrors(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	confidential, _ := w.client(func(n *idp.Client) { n.Type, n.PKCEOptional = idp.Web, true })

	repeated := request(c)
	repeated.Add("scope", "email")
	for _, tt := range []struct {
		name      string
		params    url.Values
		wantError string
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
		{"repeated", repeated, "invalid_request"},
	} {
		got := w.newBrowser().authorize(tt.params)
		if got.location == nil {
			t.Errorf("%s: status %d, want a redirect to the client", tt.name, got.status)
			continue
		}
		target := *got.location
		target.RawQuery, target.Fragment, target.RawFragment = "", "", ""
		if target.String() != callback {
			t.Errorf("%s: a redirect to %v, want %s", tt.name, got.location, callback)
		}
		wantAnswer(t, tt.name, got, tt.wantError)
		wantParam(t, tt.name, got, "state", "s")
		wantParam(t, tt.name, got, "iss", w.url+"/")
	}
}

// TestAuthorizeEmptyParameters shows that parameters without a value have no effect, as if they were
// omitted (RFC 6749, section 3.1). This also applies to pushed requests.
func TestAuthorizeEmptyParameters(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	withEmpty := func(c idp.Client, pairs ...string) url.Values {
		v := request(c, pairs...)
		for _, name := range []string{
			"acr_values", "claims", "dpop_jkt", "id_token_hint", "login_hint", "max_age", "nonce", "registration",
			"request", "request_uri", "resource", "response_mode", "ui_locales",
		} {
			v.Set(name, "")
		}
		return v
	}

	b := w.newBrowser()
	page := b.authorize(withEmpty(c))
	wantCode(t, "a request with empty parameters", b.logIn(page, email, secret))
	pushed := b.post("/oauth/par", withEmpty(c))
	wantStatus(t, "pushing empty parameters", pushed, http.StatusCreated)
	answer := b.authorize(reference(c, text(pushed.json(t)["request_uri"])))
	wantCode(t, "a pushed request with empty parameters", answer)

	// The defaults of the client still apply.
	strict, _ := w.client(func(n *idp.Client) { n.DefaultACR = []string{"2"} })
	silent := b.authorize(withEmpty(strict, "prompt", "none"))
	wantParam(t, "empty acr_values of a client with a default", silent, "error", "login_required")
}

// TestAuthorizeStateIsExact shows that a state of up to 4096 bytes is returned unchanged.
func TestAuthorizeStateIsExact(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	b := w.newBrowser()
	b.code(c)

	for _, state := range []string{
		`"><script>`, "a\r\nX-Evil: 1", "\x00", "\u202e\u2066", "a b+c%20&=", strings.Repeat("s", 4096),
	} {
		got := b.authorize(request(c, "state", state))
		wantParam(t, "a state", got, "state", state)
		wantHeader(t, "a state", got, "X-Evil", "")
	}

	long := b.authorize(request(c, "state", strings.Repeat("s", 4097)))
	wantParam(t, "a state of 4097 bytes", long, "error", "invalid_request")
	longer := b.get("/login/oauth/authorize?" + strings.Repeat("x", 20_000))
	wantStatus(t, "a query of 20,000 bytes", longer, http.StatusRequestURITooLong)
}

// TestAuthorizeByPost shows that an authorization request may be sent by POST.
func TestAuthorizeByPost(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	b := w.newBrowser()
	page := b.post("/login/oauth/authorize", request(c))
	wantCode(t, "a login after a POST", b.logIn(page, email, secret))
}

// TestPrompts shows that prompt and max_age require a new login, or cause an error with prompt=none.
func TestPrompts(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	b := w.newBrowser()
	b.code(c)

	wantCode(t, "prompt=none when signed in", b.authorize(request(c, "prompt", "none")))

	// Each of these requests needs a new login although the browser is signed in.
	w.pass(10 * time.Second)
	for _, asked := range []struct{ param, value string }{
		{"prompt", "login"}, {"prompt", "select_account"}, {"max_age", "0"}, {"max_age", "5"},
	} {
		page := b.authorize(request(c, asked.param, asked.value))
		wantStatus(t, asked.param+"="+asked.value, page, http.StatusOK)
		w.pass(10 * time.Second)
		wantCode(t, "the login for "+asked.param+"="+asked.value, b.logIn(page, email, secret))
		w.pass(10 * time.Second)
	}

	// The last login was ten seconds ago.
	wantCode(t, "max_age=1000", b.authorize(request(c, "max_age", "1000")))
	silent := b.authorize(request(c, "prompt", "none", "max_age", "5"))
	wantParam(t, "prompt=none with max_age=5", silent, "error", "login_required")
}

// TestBrowserSessionEnds shows that a browser session ends after 12 idle hours, and after seven
// days.
func TestBrowserSessionEnds(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	b := w.newBrowser()
	b.code(c)
	for range 13 { // each visit extends the idle limit
		w.pass(11 * time.Hour)
		wantCode(t, "a visit within 12 hours", b.authorize(request(c)))
	}
	w.pass(26 * time.Hour) // 169 hours since the login
	wantStatus(t, "a visit after seven days", b.authorize(request(c)), http.StatusOK)

	b.code(c)
	w.pass(13 * time.Hour)
	wantStatus(t, "a visit after 13 idle hours", b.authorize(request(c)), http.StatusOK)
}

// TestIDTokenHint shows that a hint restricts who may answer a request.
func TestIDTokenHint(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	other, _ := w.client(nil)
	w.subscriber("bob@example.com")
	hint := text(w.tokens(c)["id_token"])

	b := w.newBrowser()
	b.logIn(b.authorize(request(c)), "bob@example.com", secret)
	silent := func(c idp.Client, hint string) reply {
		return b.authorize(request(c, "prompt", "none", "id_token_hint", hint))
	}

	// Only a valid hint issued to the same client counts.
	wantParam(t, "ada's hint in bob's browser", silent(c, hint), "error", "login_required")
	wantCode(t, "an invalid hint", silent(c, "garbage"))
	wantCode(t, "another client's hint", silent(other, hint))

	// A login as another subscriber fails.
	page := b.authorize(request(c, "id_token_hint", hint))
	asBob := b.logIn(page, "bob@example.com", secret)
	wantParam(t, "a login as bob for ada's hint", asBob, "error", "login_required")
	page = b.authorize(request(c, "id_token_hint", hint))
	wantCode(t, "a login as ada for ada's hint", b.logIn(page, email, secret))
	wantCode(t, "ada's hint in her browser", silent(c, hint))
}
