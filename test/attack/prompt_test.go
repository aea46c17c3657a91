package attack

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// TestA19PromptNone shows that prompt=none succeeds only in a browser that is signed in to the
// project, and only with an ID token hint for the subscriber who is signed in.
func TestA19PromptNone(t *testing.T) {
	p := project(t)
	c := p.NewClient(t, "spa", "--first-party")
	sub, other := p.NewSubscriber(t), p.NewSubscriber(t)
	mine, b := c.SignIn(t, sub, loginScope)
	theirs, _ := c.SignIn(t, other, loginScope)
	ask := func(b *harness.Browser, f *harness.Flow) harness.Page { return b.Open(t, f.URL()) }

	ask(c.Browser(), c.NewFlow("openid").With("prompt", "none")).WantCallbackError(t, "login_required")
	ask(b, c.NewFlow("openid").With("prompt", "none login")).WantCallbackError(t, "invalid_request")
	ask(b, c.NewFlow("openid").With("prompt", "shibboleth")).WantCallbackError(t, "invalid_request")
	ask(b, c.NewFlow("openid").With("prompt", "none").With(
		"id_token_hint", theirs.IDToken)).WantCallbackError(t, "login_required")
	silent := ask(b, c.NewFlow("openid").With("prompt", "none").With("id_token_hint", mine.IDToken)).Callback(t)
	if silent.Get("code") == "" {
		t.Errorf("prompt=none with the subscriber's own hint returned %v, want a code", silent)
	}

	foreign := project(t).NewClient(t, "spa", "--first-party")
	ask(b, foreign.NewFlow("openid").With("prompt", "none")).WantCallbackError(t, "login_required")
}

// TestA20Reauthentication shows that prompt=login and max_age require a new login when the existing
// login is not sufficient.
func TestA20Reauthentication(t *testing.T) {
	p := project(t)
	c := p.NewClient(t, "spa", "--first-party")
	sub := p.NewSubscriber(t)
	tokens, b := c.SignIn(t, sub, loginScope)
	first := authTime(t, tokens)

	if !b.Open(t, c.NewFlow("openid").With("prompt", "login").URL()).Has("password") {
		t.Errorf("prompt=login did not ask for a password")
	}
	harness.Eventually(t, time.Minute, "a login to be older than max_age=1", func() error {
		if !b.Open(t, c.NewFlow("openid").With("max_age", "1").URL()).Has("password") {
			return fmt.Errorf("the server does not ask for a password")
		}
		return nil
	})
	b.Open(t, c.NewFlow("openid").With("max_age", "1").With("prompt", "none").URL()).WantCallbackError(t,
		"login_required")
	if b.Open(t, c.NewFlow("openid").With("max_age", "10000").URL()).Left == nil {
		t.Errorf("max_age=10000 asked for a new login")
	}

	f := c.NewFlow(loginScope).With("prompt", "login")
	f.Redeem(t, f.Code(t, b, sub)).Want(t, 200).Read(t, &tokens)
	if again := authTime(t, tokens); again <= first {
		t.Errorf("auth_time is %d after a new login and was %d before, want a later time", again, first)
	}

	for _, bad := range []string{"-1", "1e9", "abc", "99999999999999999999"} {
		b.Open(t, c.NewFlow("openid").With("max_age", bad).URL()).WantCallbackError(t, "invalid_request")
	}
}

// authTime returns the auth_time of an ID token.
func authTime(t *testing.T, tokens harness.Tokens) int64 {
	t.Helper()
	parts := strings.Split(tokens.IDToken, ".")
	if len(parts) != 3 {
		t.Fatalf("%q is not an ID token", tokens.IDToken)
	}

	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}

	var claims struct {
		AuthTime int64 `json:"auth_time"`
	}
	if err := json.Unmarshal(raw, &claims); err != nil || claims.AuthTime == 0 {
		t.Fatalf("ID token %s: %v, want auth_time", raw, err)
	}
	return claims.AuthTime
}

// TestA22Requests shows that unsupported response types, scopes and modes, and oversized
// requests, are refused.
func TestA22Requests(t *testing.T) {
	c := project(t).NewClient(t, "spa")
	b := c.Browser()
	for _, kind := range []string{"token", "id_token token", "code token", "code code", "code id_token",
		"none", "CODE"} {
		b.Open(t, c.NewFlow("openid").With("response_type", kind).URL()).WantCallbackError(
			t, "unsupported_response_type")
	}

	b.Open(t, c.NewFlow("openid").With("response_type", "id_token").With("nonce",
		"n").URL()).WantCallbackError(t, "unauthorized_client")
	b.Open(t, c.NewFlow("openid").With("response_type", "").URL()).WantCallbackError(
		t, "unsupported_response_type", "invalid_request")
	b.Open(t, c.NewFlow("openid").Without("response_type").URL()).WantCallbackError(
		t, "unsupported_response_type", "invalid_request")

	for _, scope := range []string{"", "nonsense", "openid nonsense", "openid Voice", strings.Repeat("a ", 2000)} {
		b.Open(t, c.NewFlow(scope).URL()).WantCallbackError(t, "invalid_scope")
	}
	b.Open(t, c.NewFlow("").Without("scope").URL()).WantCallbackError(t, "invalid_scope")

	b.Open(t, c.NewFlow("openid").With("response_mode", "web_message").URL()).WantCallbackError(t, "invalid_request")

	b.Open(t, c.NewFlow("openid").With("x", strings.Repeat("x", 64<<10)).URL()).Want(t, 414, 431)
	c.Post(t, "/login/oauth/authorize", harness.Body(
		"application/x-www-form-urlencoded", []byte("state="+strings.Repeat("x", 2<<20)))).Want(t, 413)
}

// TestA22Repeated shows that a repeated parameter is refused. If the parameter determines the
// redirect, the error is not sent to a redirect URI.
func TestA22Repeated(t *testing.T) {
	c := project(t).NewClient(t, "spa")
	b := c.Browser()
	for name, value := range map[string]string{
		"scope":          "openid",
		"state":          "x",
		"response_type":  "code",
		"code_challenge": strings.Repeat("a", 43),
	} {
		b.Open(t, c.NewFlow("openid").URL()+"&"+name+"="+value).WantCallbackError(t, "invalid_request")
	}

	b.Open(t, c.NewFlow("openid").URL()+"&redirect_uri=https://evil.example/").WantErrorPage(t, 400)
	b.Open(t, c.NewFlow("openid").URL()+"&client_id=x").WantErrorPage(t, 400)
}

// TestA23State sends states with markup and control characters. Each state must be returned to the
// client unchanged, and must not appear on a page.
func TestA23State(t *testing.T) {
	p := project(t)
	c := p.NewClient(t, "spa")
	sub := p.NewSubscriber(t)
	for _, evil := range []string{
		"<script>alert(1)</script>", `"><img src=x onerror=alert(1)>`, "\r\nX-Evil: 1", "\u202e\u200f",
		"&state=2#x", "\x00", strings.Repeat("s", 4<<10-26),
	} {
		random := rand.Text()
		state := random + evil
		b := c.Browser()
		page := b.Open(t, c.NewFlow("openid").With("state", state).URL())

		for _, fields := range []map[string]string{{"username": sub.Email, "password": "wrong"},
			{"username": sub.Email, "password": sub.Password}} {
			if strings.Contains(string(page.Body), random) {
				t.Errorf("the state %q is on the page %s", evil, page.URL)
			}
			page = b.Submit(t, page, "login-submit", fields)
		}

		if page.Has("consent-allow") { // only on the first login
			page = b.Submit(t, page, "consent-allow", nil)
		}

		if got := page.Callback(t).Get("state"); got != state || page.Header.Get("X-Evil") != "" {
			t.Errorf("state = %q with headers %v, want %q", got, page.Header, state)
		}
	}
}

// TestA25RequestObjects shows that the server neither fetches nor trusts request objects, and
// trusts no unsigned or altered hints.
func TestA25RequestObjects(t *testing.T) {
	tr := newTrap(t)
	p := project(t)
	c := p.NewClient(t, "spa", "--first-party")
	sub, other := p.NewSubscriber(t), p.NewSubscriber(t)
	_, b := c.SignIn(t, sub, loginScope)
	theirs, _ := c.SignIn(t, other, loginScope)

	for _, object := range []string{unsigned(map[string]any{"client_id": c.ID}), "x.y.z", "{}"} {
		b.Open(t, c.NewFlow("openid").With("request", object).URL()).WantCallbackError(t, "request_not_supported")
	}
	for _, uri := range []string{tr.URL + "/object", "http://169.254.169.254/latest",
		"urn:ietf:params:oauth:request_uri:x"} {
		b.Open(t, c.NewFlow("openid").With("request_uri", uri).URL()).WantCallbackError(
			t, "request_uri_not_supported", "invalid_request_uri")
	}

	// A hint without a valid signature must not choose the subscriber.
	for _, hint := range []string{unsigned(map[string]any{"sub": other.ID, "iss": p.Issuer(), "aud": c.ID}),
		theirs.IDToken[:len(theirs.IDToken)-4] + "AAAA", "x"} {
		f := c.NewFlow("openid").With("prompt", "none").With("id_token_hint", hint)
		answer := b.Open(t, f.URL()).Callback(t)
		if answer.Get("code") == "" {
			continue // refused
		}

		var tokens harness.Tokens
		f.Redeem(t, answer.Get("code")).Want(t, 200).Read(t, &tokens)
		if got := p.Get(t, "/oauth/userinfo", harness.Bearer(tokens.AccessToken)).Want(
			t, 200).Object(t)["sub"]; got != sub.ID {
			t.Errorf("the hint %s signed %v in", hint, got)
		}
	}
	tr.wantNoCalls(t)
}
