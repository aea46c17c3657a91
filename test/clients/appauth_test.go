package clients

import (
	"net/url"
	"strings"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// mobileRedirect is a redirect URI with the custom scheme of a native app.
const mobileRedirect = "com.dialer://oauth-callback"

// TestAppAuth shows that clients with the profile mobile-legacy may send the incomplete requests
// that native apps of the fabric send.
func TestAppAuth(t *testing.T) {
	harness.OneBackend(t)
	p := harness.Shared(t).NewProject(t)
	sub := p.NewSubscriber(t)
	c := p.NewClient(t, "native", "--profile", "mobile-legacy", "--auth-method", "client_secret_post",
		"--redirect-uri", mobileRedirect, "--access-token", "fabric")

	tests := []struct {
		name   string
		change func(*harness.Flow)
	}{
		{"empty scope", func(f *harness.Flow) { f.With("scope", "") }},
		{"no scope", func(f *harness.Flow) { f.Without("scope") }},
		{"no response_type", func(f *harness.Flow) { f.Without("response_type") }},
		{"no code_challenge_method", func(f *harness.Flow) { f.Without("code_challenge_method") }},
		{"client_id, redirect_uri and code_challenge alone", func(f *harness.Flow) {
			f.Without("scope", "state", "nonce", "response_type", "code_challenge_method")
		}},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := c.NewFlow("openid")
			tt.change(f)
			b := c.Browser()
			answer := b.SignIn(t, f.URL(), sub)
			if got, want := answer.Get("state"), f.Query.Get("state"); got != want {
				t.Errorf("state = %q, want %q", got, want)
			}

			var tokens harness.Tokens
			f.Redeem(t, answer.Get("code")).Want(t, 200).Read(t, &tokens)
			wantSubscriber(t, p, tokens, sub)
			c.Refresh(t, tokens.RefreshToken).Want(t, 200)
		})
	}
}

// TestAppAuthRedirect shows that the browser is redirected to exactly the redirect URI of the app,
// because the operating system recognizes the app by it.
func TestAppAuthRedirect(t *testing.T) {
	harness.OneBackend(t)
	p := harness.Shared(t).NewProject(t)
	sub := p.NewSubscriber(t)
	c := p.NewClient(t, "native", "--profile", "mobile-legacy", "--redirect-uri", mobileRedirect, "--first-party")
	b := c.Browser()
	page := b.Open(t, c.NewFlow("openid").URL())
	page = b.Submit(t, page, "login-submit", map[string]string{"username": sub.Email, "password": sub.Password})
	if got := page.Header.Get("Location"); !strings.HasPrefix(got, mobileRedirect+"?") {
		t.Errorf("the browser was redirected to %q, want %s?…", got, mobileRedirect)
	}
}

// TestAppAuthJSON shows that the token endpoint accepts JSON, which a command-line client of the
// fabric sends.
func TestAppAuthJSON(t *testing.T) {
	harness.OneBackend(t)
	p := harness.Shared(t).NewProject(t)
	sub := p.NewSubscriber(t)
	c := p.NewClient(t, "native", "--profile", "mobile-legacy", "--redirect-uri", mobileRedirect,
		"--access-token", "fabric")
	f := c.NewFlow("").Without("state", "nonce", "scope", "response_type", "code_challenge_method")
	code := c.Browser().SignIn(t, f.URL(), sub).Get("code")
	var tokens harness.Tokens
	p.Post(t, "/oauth/token", harness.JSON(members(f.Form(code), "client_id", c.ID))).Want(t, 200).Read(t, &tokens)
	wantSubscriber(t, p, tokens, sub)

	again := url.Values{
		"grant_type":    {"refresh_token"},
		"refresh_token": {tokens.RefreshToken},
		"redirect_uri":  {mobileRedirect},
	}
	p.Post(t, "/oauth/token", harness.JSON(members(again, "client_id", c.ID))).Want(t, 200).Read(t, &tokens)
	wantSubscriber(t, p, tokens, sub)
}

// members returns a form and one more member as a JSON object.
func members(v url.Values, name, value string) map[string]string {
	object := map[string]string{name: value}
	for n := range v {
		object[n] = v.Get(n)
	}
	return object
}

func wantSubscriber(t *testing.T, p *harness.Project, tokens harness.Tokens, sub harness.Subscriber) {
	t.Helper()
	if !strings.EqualFold(tokens.TokenType, "Bearer") || tokens.ExpiresIn != 7200 || tokens.RefreshToken == "" {
		t.Errorf("the token response is %+v, want a Bearer token for 7200 s and a refresh token", tokens)
	}
	info := p.Get(t, "/subscriber/info", harness.Bearer(tokens.AccessToken)).Want(t, 200).Object(t)
	if info["id"] != sub.ID || info["email"] != sub.Email {
		t.Errorf("/subscriber/info has the ID %v and the email %v, want %s and %s", info["id"], info["email"],
			sub.ID, sub.Email)
	}
}
