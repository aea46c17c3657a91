package conformance

import (
	"crypto/rand"
	"maps"
	"mime"
	"net/url"
	"slices"
	"strings"

	"github.com/selvage/selvage/test/harness"
)

// A request is an authorization request in the plans. By default it has the scope openid, a state
// and a nonce, and no code challenge.
type request struct {
	m      *module
	client *harness.Client
	url.Values
}

func (m *module) request(params ...string) request {
	return m.requestOf(m.op.basic, params...)
}

// requestOf returns a request of a client. params are names and values of additional parameters.
func (m *module) requestOf(c *harness.Client, params ...string) request {
	r := request{
		m:      m,
		client: c,
		Values: url.Values{
			"response_type": {m.kind},
			"client_id":     {c.ID},
			"redirect_uri":  {c.Redirect},
			"scope":         {"openid"},
			"state":         {rand.Text()},
			"nonce":         {rand.Text()},
		},
	}
	if m.mode != "" {
		r.Set("response_mode", m.mode)
	}

	for i := 0; i < len(params); i += 2 {
		r.Set(params[i], params[i+1])
	}
	return r
}

// url returns the URL to which the client sends the browser.
func (r request) url() string {
	return r.m.op.endpoint(r.m, "authorization_endpoint") + "?" + r.Encode()
}

// answer opens the request's URL, signs in, allows what is requested, and returns the parameters
// that the client receives.
func (r request) answer() url.Values {
	r.m.Helper()
	return r.m.parameters(r.m.signIn(r.m.browser.Open(r.m, r.url())))
}

// signIn signs in and consents if the pages ask for it, and returns the resulting page.
func (m *module) signIn(p harness.Page) harness.Page {
	m.Helper()
	if p.Has("login-submit") {
		p = m.browser.Submit(m, p, "login-submit",
			map[string]string{"username": m.op.person.Email, "password": m.op.person.Password})
	}
	if p.Has("consent-allow") {
		p = m.browser.Submit(m, p, "consent-allow", nil)
	}
	return p
}

// parameters returns the parameters of the authorization response. It checks that the response
// arrives in the plan's response mode.
func (m *module) parameters(p harness.Page) url.Values {
	m.Helper()
	if m.mode != "form_post" {
		v := p.Callback(m)
		m.check((p.Left.Fragment != "") == (m.kind != "code"),
			"the response %s is in the wrong part of the URL", p.Left)
		m.check(m.kind == "code" || p.Left.RawQuery == "", "the response %s has a query", p.Left)
		return v
	}
	action, v := p.FormPost(m) // OAuth 2.0 Form Post Response Mode, section 2
	m.check(action == harness.RedirectURI, "the response is posted to %s, want %s", action, harness.RedirectURI)
	return v
}

// returns reports whether the responses to the module's requests contain the given part, which is
// code, id_token or token.
func (m *module) returns(part string) bool { return slices.Contains(strings.Fields(m.kind), part) }

// finish checks a successful response, and returns what the client then has. If the response
// contains a code, finish redeems the code for tokens.
func (r request) finish(v url.Values) signedIn {
	r.m.Helper()
	r.succeeds(v)
	m := r.m
	direct := signedIn{Tokens: harness.Tokens{AccessToken: v.Get("access_token"), IDToken: v.Get("id_token")}}
	m.check(v.Has("code") == m.returns("code") && v.Has("id_token") == m.returns("id_token") &&
		v.Has("access_token") == m.returns("token"), "the response to %s has %v", m.kind, v)

	if m.returns("id_token") {
		direct.claims = r.idToken(direct.IDToken)
		r.wantHash(direct.claims, "at_hash", direct.AccessToken)
		r.wantHash(direct.claims, "c_hash", v.Get("code"))
	}
	if m.returns("token") {
		m.check(strings.EqualFold(v.Get("token_type"), "Bearer"), "token_type = %q", v.Get("token_type"))
		m.check(v.Get("expires_in") != "", "the response has no expires_in")
		m.op.Get(m, m.op.endpoint(m, "userinfo_endpoint"), harness.Bearer(direct.AccessToken)).Want(m, 200)
	}
	if !m.returns("code") {
		return direct
	}

	s := r.redeem(r.form(v.Get("code")))
	m.check(direct.claims == nil || direct.sub() == s.sub(),
		"the first ID token has the claims %v, but the one from the token endpoint has sub = %s",
		direct.claims, s.sub())
	return s
}

// wantHash checks the hash of a value that came with an ID token (OpenID Connect Core, section
// 3.3.2.11). If there is a value, the ID token must contain its hash.
func (r request) wantHash(claims map[string]any, name, value string) {
	r.m.Helper()
	if value != "" || claims[name] != nil {
		r.m.check(claims[name] == hashOf(value), "%s = %v, want %s", name, claims[name], hashOf(value))
	}
}

// code returns the code of a response, which must be a success.
func (r request) code(v url.Values) string {
	r.m.Helper()
	r.succeeds(v)
	if v.Get("code") == "" {
		r.m.Fatalf("the client received %v, want a code", v)
	}
	return v.Get("code")
}

// succeeds checks that a response is a success.
func (r request) succeeds(v url.Values) {
	r.m.Helper()
	r.m.check(v.Get("iss") == r.m.op.Issuer(), "iss = %q, want %q (RFC 9207)", v.Get("iss"), r.m.op.Issuer())
	if v.Get("error") != "" {
		r.m.Fatalf("the client received %v, want a success", v)
	}
	r.m.check(v.Get("state") == r.Get("state"), "state = %q, want %q", v.Get("state"), r.Get("state"))
}

// wantError checks an error response (OpenID Connect Core, section 3.1.2.6).
func (r request) wantError(v url.Values, codes ...string) {
	r.m.Helper()
	r.m.check(v.Get("state") == r.Get("state"), "state = %q, want %q", v.Get("state"), r.Get("state"))
	r.m.check(v.Get("iss") == r.m.op.Issuer(), "iss = %q, want %q (RFC 9207)", v.Get("iss"), r.m.op.Issuer())

	if err := only(v, "error", "error_description", "error_uri", "state", "session_state", "iss"); err != nil {
		r.m.Errorf("the error response is invalid: %v", err)
	}
	r.m.check(isDescription(v.Get("error_description")),
		"error_description = %q contains characters that RFC 6749 forbids, or line breaks", v.Get("error_description"))

	for _, code := range codes {
		if v.Get("error") == code {
			return
		}
	}
	r.m.Errorf("error = %q, want one of %q", v.Get("error"), codes)
}

// isDescription reports whether a text is a valid error_description (RFC 6749, section 4.1.2.1). It
// rejects line breaks and tabs, too, because the Foundation's suite warns about them.
func isDescription(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' })
}

// form returns the token request for a code.
func (r request) form(code string) url.Values {
	return url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {r.client.Redirect}}
}

// redeem sends a token request, and checks the response.
func (r request) redeem(form url.Values) signedIn {
	r.m.Helper()
	return r.tokens(r.m.postToken(r.client, form))
}

// postToken sends a token request with the client's authentication.
func (m *module) postToken(c *harness.Client, form url.Values) harness.Answer {
	m.Helper()
	options := c.Authenticated(form)
	if _, ok := m.keys[c.ID]; ok {
		proven := maps.Clone(form)
		proven.Set("client_assertion", m.assertion(c.ID, m.op.endpoint(m, "token_endpoint")))
		proven.Set("client_assertion_type", assertionType)
		options = []harness.Option{harness.Form(proven)}
	}
	return c.Post(m, m.op.endpoint(m, "token_endpoint"), options...)
}

// tokens checks a token response and its ID token (OpenID Connect Core, sections 3.1.3.3 and
// 3.1.3.7).
func (r request) tokens(a harness.Answer) signedIn {
	r.m.Helper()
	a.Want(r.m, 200)
	r.m.check(isJSON(a), "Content-Type = %q, want application/json", a.Header.Get("Content-Type"))
	r.m.check(a.Header.Get("Cache-Control") == "no-store", "Cache-Control = %q, want no-store",
		a.Header.Get("Cache-Control"))

	var t harness.Tokens
	a.Read(r.m, &t)
	r.m.check(strings.EqualFold(t.TokenType, "Bearer"), "token_type = %q, want Bearer", t.TokenType)
	r.m.check(t.ExpiresIn > 0 && t.ExpiresIn <= 365*24*60*60,
		"expires_in = %d, want between one second and one year", t.ExpiresIn)

	if t.AccessToken == "" || t.IDToken == "" {
		r.m.Fatalf("the token response %s lacks a token", a.Body)
	}
	return signedIn{Tokens: t, claims: r.idToken(t.IDToken)}
}

// signedIn holds what a client has after a login.
type signedIn struct {
	harness.Tokens
	claims map[string]any // claims of the ID token
}

func (s signedIn) sub() string { return s.claims["sub"].(string) } // idToken has checked it

// flow runs a complete login with a request, and checks the response, the tokens and userinfo.
func (r request) flow() signedIn {
	r.m.Helper()
	s := r.finish(r.answer())
	r.m.userInfo(s)
	return s
}

// userInfo requests the userinfo endpoint and checks the response. Without an access token, it
// returns the claims of the ID token, which then contains the claims of the scopes (OpenID Connect
// Core, section 5.4).
func (m *module) userInfo(s signedIn) map[string]any {
	m.Helper()
	if s.AccessToken == "" {
		return s.claims
	}
	return m.checkUserInfo(s, m.op.Get(m, m.op.endpoint(m, "userinfo_endpoint"), harness.Bearer(s.AccessToken)))
}

func isJSON(a harness.Answer) bool {
	kind, _, err := mime.ParseMediaType(a.Header.Get("Content-Type"))
	return err == nil && kind == "application/json"
}
