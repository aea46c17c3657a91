package harness

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"strings"
	"time"
)

// RedirectURI is the redirect URI of the tests' clients. Nothing needs to listen there.
const RedirectURI = "https://rp.example/cb"

// A Client is an OAuth client.
type Client struct {
	*Project
	ID, Secret string
	Redirect   string
	AuthMethod string // none, client_secret_*, or private_key_jwt, for which tests sign assertions themselves
}

// NewClient creates a client of the type kind: spa, native, web or service. flags are additional
// flags for `selvage client create`. The client redirects to [RedirectURI] unless a flag sets
// another URI.
func (p *Project) NewClient(t T, kind string, flags ...string) *Client {
	t.Helper()
	c := &Client{Project: p, Redirect: RedirectURI, AuthMethod: "client_secret_basic"}
	if kind == "spa" || kind == "native" {
		c.AuthMethod = "none"
	}

	args := []string{"client", "create", "--project", p.ID, "--type", kind}
	for i, f := range flags {
		switch f {
		case "--auth-method":
			c.AuthMethod = flags[i+1]
		case "--redirect-uri":
			c.Redirect = flags[i+1]
		}
	}

	if c.Redirect == RedirectURI && kind != "service" {
		args = append(args, "--redirect-uri", RedirectURI)
	}

	made := p.CLI(t, "", append(args, flags...)...)
	c.ID = member(t, made, "client_id")
	if strings.HasPrefix(c.AuthMethod, "client_secret_") {
		c.Secret = member(t, made, "client_secret")
	}
	return c
}

// A Flow is an authorization request with PKCE.
type Flow struct {
	Client   *Client
	Verifier string
	Query    url.Values
}

// NewFlow returns a new flow for a scope.
func (c *Client) NewFlow(scope string) *Flow {
	f := &Flow{Client: c, Verifier: rand.Text() + rand.Text()}
	f.Query = url.Values{
		"response_type":         {"code"},
		"client_id":             {c.ID},
		"redirect_uri":          {c.Redirect},
		"scope":                 {scope},
		"state":                 {rand.Text()},
		"nonce":                 {rand.Text()},
		"code_challenge":        {Challenge(f.Verifier)},
		"code_challenge_method": {"S256"},
	}
	return f
}

// Challenge returns the S256 challenge of a verifier (RFC 7636, section 4.2).
func Challenge(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// With sets a parameter of the request.
func (f *Flow) With(name, value string) *Flow {
	f.Query.Set(name, value)
	return f
}

// Without removes parameters from the request.
func (f *Flow) Without(names ...string) *Flow {
	for _, n := range names {
		f.Query.Del(n)
	}
	return f
}

// URL returns the URL to which the client sends the browser.
func (f *Flow) URL() string {
	return f.Client.Issuer() + "login/oauth/authorize?" + f.Query.Encode()
}

// Form returns the token request for an authorization code.
func (f *Flow) Form(code string) url.Values {
	return url.Values{
		"grant_type":    {"authorization_code"},
		"code":          {code},
		"redirect_uri":  {f.Client.Redirect},
		"code_verifier": {f.Verifier},
	}
}

// Redeem exchanges an authorization code for tokens.
func (f *Flow) Redeem(t T, code string) Answer {
	t.Helper()
	return f.Client.Token(t, f.Form(code))
}

// Tokens holds a response from the token endpoint.
type Tokens struct {
	AccessToken  string `json:"access_token"`
	TokenType    string `json:"token_type"`
	ExpiresIn    int    `json:"expires_in"`
	RefreshToken string `json:"refresh_token"`
	IDToken      string `json:"id_token"`
	Scope        string `json:"scope"`
}

// Token posts a form to the token endpoint, authenticated as the client.
func (c *Client) Token(t T, form url.Values) Answer {
	t.Helper()
	return c.postAs(t, "/oauth/token", form)
}

// WantSlowDown polls the token endpoint for a device until the response is slow_down, which the
// server returns for a poll within five seconds of the previous poll (RFC 8628, section 3.5). last
// is when the previous poll began. WantSlowDown returns when its own last poll began.
func (c *Client) WantSlowDown(t T, poll url.Values, last time.Time) time.Time {
	t.Helper()
	for {
		before := last
		last = time.Now()
		a := c.Token(t, poll)
		if time.Since(before) < 5*time.Second || a.Object(t)["error"] != "authorization_pending" {
			a.WantError(t, 400, "slow_down")
			return last
		}
	}
}

// Refresh redeems a refresh token.
func (c *Client) Refresh(t T, token string) Answer {
	t.Helper()
	return c.Token(t, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token}})
}

// Introspect introspects a token.
func (c *Client) Introspect(t T, token string) Answer {
	t.Helper()
	return c.postAs(t, "/oauth/introspect", url.Values{"token": {token}})
}

// Revoke revokes a token.
func (c *Client) Revoke(t T, token string) Answer {
	t.Helper()
	return c.postAs(t, "/oauth/revoke", url.Values{"token": {token}})
}

// Authenticated returns options that send the form and authenticate the client.
func (c *Client) Authenticated(form url.Values) []Option {
	v := url.Values{}
	for name, values := range form {
		v[name] = values
	}

	switch c.AuthMethod {
	case "none":
		v.Set("client_id", c.ID)
	case "client_secret_post":
		v.Set("client_id", c.ID)
		v.Set("client_secret", c.Secret)
	default: // RFC 6749, section 2.3.1: both parts are form-encoded first
		return []Option{Form(v), Basic(url.QueryEscape(c.ID), url.QueryEscape(c.Secret))}
	}
	return []Option{Form(v)}
}

func (c *Client) postAs(t T, path string, form url.Values) Answer {
	t.Helper()
	return c.Post(t, path, c.Authenticated(form)...)
}

// SignIn runs a complete authorization code flow in a new browser, and returns the tokens and the
// browser.
func (c *Client) SignIn(t T, s Subscriber, scope string) (Tokens, *Browser) {
	t.Helper()
	b := c.Browser()
	return c.SignInWith(t, b, s, scope), b
}

// SignInWith runs a complete authorization code flow in the browser.
func (c *Client) SignInWith(t T, b *Browser, s Subscriber, scope string) Tokens {
	t.Helper()
	f := c.NewFlow(scope)
	var tokens Tokens
	f.Redeem(t, f.Code(t, b, s)).Want(t, 200).Read(t, &tokens)
	return tokens
}

// Code opens the flow's URL, signs in, and returns the authorization code.
func (f *Flow) Code(t T, b *Browser, s Subscriber) string {
	t.Helper()
	answer := b.SignIn(t, f.URL(), s)
	if answer.Get("code") == "" || answer.Get("state") != f.Query.Get("state") {
		t.Fatalf("the client got %v, want a code and the state %s", answer, f.Query.Get("state"))
	}
	return answer.Get("code")
}
