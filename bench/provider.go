package main

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"

	"github.com/selvage/selvage/test/harness"
)

// These are the clients that the other providers know; see bench/peers.
const (
	peerRedirect      = "http://localhost/callback"
	peerNative        = "native"
	peerWeb           = "web"
	peerWebSecret     = "secret"
	peerService       = "sid1"
	peerSigned        = "sid1-jwt"
	peerServiceSecret = "verysecret"
)

// A provider describes how to use another OpenID provider.
type provider struct {
	host    string
	cookies string // Cookie header of a signed-in browser

	// These are the paths of the endpoints.
	authorize  string
	token      string
	introspect string
	userinfo   string
	jwks       string

	// login is the path of the login page. It is "" if the provider has none. form is the body that
	// the login page posts, without the request ID at its end.
	login, form string
}

// measured returns the operations that the provider supports, under the names that the same
// operations of selvage have. It signs in a browser for the operations that need a session.
func (v provider) measured(p *harness.Program) []operation {
	v.cookies = v.signIn(p)
	service := func(id string) []byte {
		return v.post(v.token, "grant_type=client_credentials", basic(id, peerServiceSecret))
	}

	// simple returns an operation that repeats one request.
	simple := func(name string, request []byte, parts ...string) operation {
		return operation{
			name:        name,
			address:     v.host,
			connections: 8,
			task:        func(int) task { return once(request, 200, parts...) },
		}
	}

	flow := func(int) task {
		return func(c *wire) error {
			_, err := v.codeFlow(c, peerNative, "")
			return err
		}
	}
	refresh := func(int) task { return v.refreshChain(p) }

	// withToken returns an operation that uses a new token in each measurement, because a provider
	// that stores tokens in memory may drop old ones.
	withToken := func(name string, ask func(token string) []byte, part string) operation {
		return operation{
			name:        name,
			address:     v.host,
			connections: 8,
			task: func(int) task {
				tokens, err := v.tokensOf(peerWeb, peerWebSecret)
				if err != nil {
					p.Fatalf("%s: %v", v.host, err)
				}
				return once(ask(tokens.AccessToken), 200, part)
			},
		}
	}

	return []operation{
		simple("client_credentials, sealed", service(peerService), `"access_token"`),
		simple("client_credentials, JWT ES256", service(peerSigned), `"access_token":"ey`),
		withToken("introspection", func(token string) []byte {
			return v.post(v.introspect, url.Values{"token": {token}}.Encode(), basic(peerWeb, peerWebSecret))
		}, `"active":true`),
		withToken("userinfo", func(token string) []byte {
			return v.get(v.userinfo, "Authorization: Bearer "+token)
		}, `"sub"`),
		simple("JWKS", v.get(v.jwks), `"keys"`),
		simple("discovery", v.get("/.well-known/openid-configuration"), v.host),
		{name: "code flow, no password", address: v.host, connections: 8, task: flow},
		{name: "code flow, no password", address: v.host, connections: 64, task: flow},
		{name: "refresh with rotation", address: v.host, connections: 8, task: refresh},
		{name: "refresh with rotation", address: v.host, connections: 64, task: refresh},
	}
}

func (v provider) get(path string, headers ...string) []byte {
	return request(v.host, "GET", path, "", headers...)
}

func (v provider) post(path, body string, headers ...string) []byte {
	return postTo(v.host, path, form, body, headers...)
}

// signIn begins a flow for each client in a browser, and returns the browser's Cookie header. If a
// provider has no login page, the browser is then signed in.
func (v provider) signIn(p *harness.Program) string {
	jar, err := cookiejar.New(nil)
	if err != nil {
		p.Fatalf("%v", err)
	}

	browser := http.Client{
		Jar: jar,
		CheckRedirect: func(r *http.Request, _ []*http.Request) error {
			if strings.HasPrefix(r.URL.String(), peerRedirect) {
				return http.ErrUseLastResponse
			}
			return nil
		},
	}
	for _, client := range []string{peerNative, peerWeb} {
		r, err := browser.Get("http://" + v.host + v.authorize + "?" + newPeerFlow(client).query())
		if err != nil {
			p.Fatalf("signing in to %s: %v", v.host, err)
		}
		_ = r.Body.Close() // only the cookies matter
	}

	var pairs []string
	for _, c := range jar.Cookies(&url.URL{Scheme: "http", Host: v.host, Path: "/"}) {
		pairs = append(pairs, c.Name+"="+c.Value)
	}
	return "Cookie: " + strings.Join(pairs, "; ")
}

// A peerFlow is one authorization request with PKCE.
type peerFlow struct{ client, state, verifier string }

func newPeerFlow(client string) peerFlow {
	return peerFlow{
		client:   client,
		state:    rand.Text(),
		verifier: rand.Text() + rand.Text(),
	}
}

func (f peerFlow) query() string {
	challenge := sha256.Sum256([]byte(f.verifier))
	return url.Values{
		"client_id":             {f.client},
		"redirect_uri":          {peerRedirect},
		"response_type":         {"code"},
		"scope":                 {loginScope},
		"state":                 {f.state},
		"code_challenge_method": {"S256"},
		"code_challenge":        {base64.RawURLEncoding.EncodeToString(challenge[:])},
	}.Encode()
}

// codeFlow runs a complete authorization flow in the signed-in browser. For a public client, secret
// is "".
func (v provider) codeFlow(c *wire, client, secret string) (t harness.Tokens, err error) {
	f := newPeerFlow(client)
	code, err := v.code(c, f)
	if err != nil {
		return t, err
	}
	body := url.Values{
		"grant_type":    {"authorization_code"},
		"code":          {code},
		"redirect_uri":  {peerRedirect},
		"code_verifier": {f.verifier},
	}
	return v.redeem(c, body, client, secret)
}

// code follows the redirects of an authorization request and returns the code. If a redirect leads
// to the login page, it signs in.
func (v provider) code(c *wire, f peerFlow) (string, error) {
	next := v.get(v.authorize+"?"+f.query(), v.cookies)
	for range 5 {
		a, err := c.do(next)
		if err != nil {
			return "", err
		}

		redirect, err := url.Parse(a.header("Location"))
		if err != nil {
			return "", err
		}
		q := redirect.Query()
		switch {
		case v.login != "" && redirect.Path == v.login:
			next = v.post(v.login, v.form+q.Get("authRequestID"), v.cookies)
		case strings.HasPrefix(redirect.String(), peerRedirect):
			if q.Get("code") == "" || q.Get("state") != f.state {
				return "", fmt.Errorf("the flow ended at %q, want a code and the same state", redirect)
			}
			return q.Get("code"), nil
		case redirect.Path == "":
			return "", fmt.Errorf("the provider returned %d %.300s, want a redirect", a.status, a.body)
		default:
			next = v.get(redirect.RequestURI(), v.cookies)
		}
	}
	return "", fmt.Errorf("too many redirects")
}

// redeem sends a token request and checks the response.
func (v provider) redeem(c *wire, body url.Values, client, secret string) (t harness.Tokens, err error) {
	var headers []string
	if secret == "" {
		body.Set("client_id", client)
	} else {
		headers = append(headers, basic(client, secret))
	}
	a, err := c.do(v.post(v.token, body.Encode(), headers...))
	if err != nil {
		return t, err
	}
	if err := a.want(200, `"access_token"`, `"id_token":"ey`); err != nil {
		return t, err
	}
	return t, json.Unmarshal(a.body, &t)
}

// tokensOf runs a code flow on its own connection and returns the tokens.
func (v provider) tokensOf(client, secret string) (harness.Tokens, error) {
	c, err := dial(v.host)
	if err != nil {
		return harness.Tokens{}, err
	}
	defer c.conn.Close()
	return v.codeFlow(c, client, secret)
}

// refreshChain returns a task that redeems a refresh token. Each repetition redeems the token that the
// previous one returned.
func (v provider) refreshChain(p *harness.Program) task {
	tokens, err := v.tokensOf(peerNative, "")
	if err != nil {
		p.Fatalf("%s: %v", v.host, err)
	}
	return func(c *wire) error {
		used := tokens.RefreshToken
		body := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {used}}
		next, err := v.redeem(c, body, peerNative, "")
		if err != nil {
			return err
		}
		if next.RefreshToken == "" || next.RefreshToken == used {
			return fmt.Errorf("the refresh token was not rotated")
		}
		tokens = next
		return nil
	}
}
