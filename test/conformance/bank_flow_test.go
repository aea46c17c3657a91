package conformance

import (
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/selvage/selvage/test/harness"
)

// newBankProvider returns a provider that trusts this machine as a proxy. It has two banks for each
// [way] to authenticate and to bind tokens. The redirect URI of the second bank has a query. flags
// are additional flags for creating the clients.
func newBankProvider(t *testing.T, ways []string, flags ...string) *provider {
	t.Helper()
	s := harness.StartConfig(t, harness.Config{Args: trustingProxy})
	op := newProviderOf(t, s)
	op.banks = make(map[string][2]bank)
	for _, name := range ways {
		other := append([]string{"--redirect-uri", harness.RedirectURI + dummyQuery}, flags...)
		op.banks[name] = [2]bank{newBank(t, op.Project, wayOf(name), flags...),
			newBank(t, op.Project, wayOf(name), other...)}
	}
	return op
}

var trustingProxy = []string{"--client-cert-header", certificateHeader, "--trusted-proxies", "127.0.0.0/8"}

// dummyQuery is the query of the second client's redirect URI.
const dummyQuery = "?dummy1=lorem&dummy2=ipsum"

func (m *module) bank() bank        { return m.op.banks[m.kind][0] }
func (m *module) secondBank() bank  { return m.op.banks[m.kind][1] }
func (m *module) isSigned() bool    { return m.mode == "jwt" } // only in the plan Message Signing
func (r transfer) endpoint() string { return r.m.op.endpoint(r.m, "authorization_endpoint") }

// sumOf returns the SHA-256 of a text in base64url.
func sumOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

func thumbprintOf(m *module, key crypto.PublicKey) string {
	m.Helper()
	sum, err := (&jose.JSONWebKey{Key: key}).Thumbprint(crypto.SHA256)
	if err != nil {
		m.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(sum)
}

// A transfer is an authorization request of a bank. Its values are the parameters that the bank
// pushes.
type transfer struct {
	m        *module
	bank     bank
	verifier string
	url.Values
	object members // changed claims of the request object, in the plan Message Signing
}

// transfer returns an authorization request of a bank. params are names and values of parameters to
// add or replace. An empty value removes a parameter.
func (m *module) transfer(b bank, params ...string) transfer {
	f := b.NewFlow("openid")
	if m.isSigned() {
		f.With("response_mode", "jwt")
	}
	for i := 0; i < len(params); i += 2 {
		f.Query.Set(params[i], params[i+1])
		if params[i+1] == "" {
			f.Query.Del(params[i])
		}
	}
	return transfer{m: m, bank: b, verifier: f.Verifier, Values: f.Query}
}

// form returns the form that the bank pushes: the parameters, or a request object that contains
// them.
func (r transfer) form() url.Values {
	r.m.Helper()
	if !r.m.isSigned() {
		return maps.Clone(r.Values)
	}
	return url.Values{"request": {r.m.sign(r.bank.signing.Key, jose.SignatureAlgorithm(r.bank.signing.Algorithm),
		members{"kid": r.bank.signing.KeyID, "typ": "oauth-authz-req+jwt"}, r.claims())}}
}

// claims returns the claims of the request object (FAPI 2.0 Message Signing, section 5.3.1).
func (r transfer) claims() members {
	now := time.Now()
	claims := members{
		"iss": r.bank.ID,
		"aud": r.m.op.Issuer(),
		"nbf": now.Unix(),
		"iat": now.Unix(),
		"exp": now.Add(5 * time.Minute).Unix(),
		"jti": rand.Text(),
	}
	for name := range r.Values {
		claims[name] = r.Get(name)
	}
	return changed(claims, r.object)
}

// push pushes the request, with additional options that may replace the usual ones.
func (r transfer) push(options ...harness.Option) harness.Answer {
	r.m.Helper()
	return r.pushForm(r.form(), options...)
}

func (r transfer) pushForm(form url.Values, options ...harness.Option) harness.Answer {
	r.m.Helper()
	return r.m.op.Post(r.m, r.m.op.endpoint(r.m, "pushed_authorization_request_endpoint"),
		append(r.m.authenticated(r.bank, form), options...)...)
}

// reference checks the response to a pushed request (RFC 9126, section 2.2), and returns its request_uri.
func (r transfer) reference(a harness.Answer) string {
	r.m.Helper()
	body := a.Want(r.m, 201).Object(r.m)
	uri, _ := body["request_uri"].(string)
	expires, _ := body["expires_in"].(float64)
	r.m.check(isJSON(a) && a.Header.Get("Cache-Control") == "no-store", "the response has the header %v",
		a.Header)
	r.m.check(expires >= 1 && expires < 600, "expires_in = %v, want less than ten minutes", body["expires_in"])
	r.m.check(strings.HasPrefix(uri, "urn:ietf:params:oauth:request_uri:") && len(uri) > 60, "request_uri = %q", uri)
	return uri
}

// visit opens a pushed request in the browser. params are names and values of additional parameters.
func (r transfer) visit(uri string, params ...string) harness.Page {
	r.m.Helper()
	v := url.Values{"client_id": {r.bank.ID}, "request_uri": {uri}}
	for i := 0; i < len(params); i += 2 {
		v.Set(params[i], params[i+1])
	}
	return r.m.browser.Open(r.m, r.endpoint()+"?"+v.Encode())
}

// answer pushes the request, signs in, and returns the authorization response.
func (r transfer) answer(options ...harness.Option) url.Values {
	r.m.Helper()
	return r.response(r.m.signIn(r.visit(r.reference(r.push(options...)))))
}

// response checks an authorization response and returns its parameters. In the plan Message Signing they
// are the claims of a JWT (JARM, section 2.1).
func (r transfer) response(p harness.Page) url.Values {
	r.m.Helper()
	v := p.Callback(r.m)
	if strings.Contains(r.bank.Redirect, "?") {
		r.m.check(v.Get("dummy1") == "lorem" && v.Get("dummy2") == "ipsum", "the redirect URI lost its query: %v", v)
		v.Del("dummy1")
		v.Del("dummy2")
	}
	if r.m.isSigned() {
		v = r.opened(v)
	}
	r.m.check(v.Get("iss") == r.m.op.Issuer(), "iss = %q, want %q (RFC 9207)", v.Get("iss"), r.m.op.Issuer())
	r.m.check(v.Get("state") == r.Get("state") && v.Has("state") == r.Has("state"), "the state of %v is not %q", v,
		r.Get("state"))
	return v
}

// opened verifies a signed response, and returns its content.
func (r transfer) opened(v url.Values) url.Values {
	r.m.Helper()
	if err := only(v, "response"); err != nil {
		r.m.Errorf("the signed response has wrong parameters: %v", err)
	}
	claims := r.m.verify(v.Get("response"), jose.ES256)
	r.m.check(claims["aud"] == r.bank.ID, "aud of the response = %v", claims["aud"])
	exp := r.m.moment(claims, "exp")
	r.m.check(exp.After(time.Now()) && time.Until(exp) < 10*time.Minute, "exp of the response is %v", exp)

	inside := url.Values{}
	for _, name := range []string{"iss", "code", "state", "error", "error_description"} {
		if text, ok := claims[name].(string); ok {
			inside.Set(name, text)
		}
	}
	return inside
}

// code returns the code of a successful response.
func (r transfer) code(v url.Values) string {
	r.m.Helper()
	if v.Get("code") == "" || v.Has("error") {
		r.m.Fatalf("the client received %v, want a code", v)
	}
	r.m.check(entropy(v.Get("code")) > 96, "the code %s is not random", v.Get("code"))
	return v.Get("code")
}

// tokenForm returns the token request for a code.
func (r transfer) tokenForm(code string) url.Values {
	return url.Values{
		"grant_type":    {"authorization_code"},
		"code":          {code},
		"redirect_uri":  {r.bank.Redirect},
		"code_verifier": {r.verifier},
	}
}

// token sends a token request with the DPoP proof or certificate that the tokens are bound to.
// proof replaces claims of the DPoP proof.
func (m *module) token(b bank, form url.Values, proof members) harness.Answer {
	m.Helper()
	options := m.authenticated(b, form)
	at := m.op.endpoint(m, "token_endpoint")
	if b.bind == byDPoP {
		options = append(options, harness.Header("DPoP", m.proof(b, "POST", at, "", proof)))
	}
	return m.op.Post(m, at, options...)
}

// redeem redeems a code, and checks the tokens.
func (r transfer) redeem(code string) harness.Tokens {
	r.m.Helper()
	return r.received(r.m.token(r.bank, r.tokenForm(code), nil), r.Get("nonce"))
}

// received checks a successful token response, whose ID token must have this nonce.
func (r transfer) received(a harness.Answer, nonce string) harness.Tokens {
	r.m.Helper()
	var t harness.Tokens
	a.Want(r.m, 200).Read(r.m, &t)
	r.m.check(isJSON(a) && a.Header.Get("Cache-Control") == "no-store",
		"the token response has the header %v", a.Header)
	kind := map[string]string{byDPoP: "dpop", byTLS: "bearer"}[r.bank.bind]
	r.m.check(strings.ToLower(t.TokenType) == kind, "token_type = %q, want %s", t.TokenType, kind)
	r.m.check(t.ExpiresIn > 0 && t.AccessToken != "" && entropy(t.AccessToken) > 96, "the tokens are %+v", t)

	claims := r.m.verify(t.IDToken, jose.ES256)
	said, _ := claims["nonce"].(string)
	r.m.check(claims["iss"] == r.m.op.Issuer() && claims["aud"] == r.bank.ID && said == nonce,
		"the ID token has %v, want the nonce %q", claims, nonce)
	return t
}

// resource uses an access token at the userinfo endpoint, the protected resource in these tests.
func (m *module) resource(b bank, token string) harness.Answer {
	m.Helper()
	at := m.op.endpoint(m, "userinfo_endpoint")
	if b.bind == byTLS {
		return m.op.Get(m, at, harness.Bearer(token), harness.Header(certificateHeader, b.certificate))
	}
	return m.op.Get(m, at, harness.Header("Authorization", "DPoP "+token),
		harness.Header("DPoP", m.proof(b, "GET", at, token, nil)))
}

// complete runs the whole flow: it gets a code, redeems it, and uses the access token.
func (r transfer) complete() harness.Tokens {
	r.m.Helper()
	t := r.redeem(r.code(r.answer()))
	r.m.resource(r.bank, t.AccessToken).Want(r.m, 200)
	return t
}

// wantRefused checks the error response of an endpoint that clients call (RFC 6749, section 5.2).
func (m *module) wantRefused(a harness.Answer, codes ...string) {
	m.Helper()
	body := a.Want(m, 400, 401).Object(m)
	code, _ := body["error"].(string)
	m.check(isJSON(a) && code != "" && strings.Contains(" "+strings.Join(codes, " ")+" ", " "+code+" "),
		"the error is %s, want one of %q", a.Body, codes)
}

// wantRefusedPage checks that an authorization request ends with an error, on a page or in a
// response.
func (r transfer) wantRefusedPage(p harness.Page, codes ...string) {
	r.m.Helper()
	if p.Has("error-page") {
		p.WantErrorPage(r.m, 400)
		return
	}
	v := p.Callback(r.m)
	if r.m.isSigned() {
		v = r.opened(v)
	}
	got := v.Get("error")
	r.m.check(got != "" && strings.Contains(" "+strings.Join(codes, " ")+" ", " "+got+" "),
		"the error is %q, want one of %q", got, codes)
}
