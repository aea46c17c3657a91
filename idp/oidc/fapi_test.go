package oidc_test

import (
	"crypto"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/keys"
)

// A bank is a client with the profile fapi2. It has a key for its assertions and another key for
// its proofs.
type bank struct {
	party
	holder
}

// newBank registers a bank. change may be nil.
func (w *world) newBank(t *testing.T, change func(*idp.Client)) bank {
	t.Helper()
	p := party{w: w, kid: "k1", alg: jose.ES256, key: newKey(t, jose.ES256)}
	p.c, _ = w.client(func(n *idp.Client) {
		n.Type, n.Profile, n.AccessToken = idp.Web, idp.FAPI2, idp.JWTToken
		n.Scopes = []string{"openid", "offline_access"}
		n.JWKS = keySet(t, "", map[string]crypto.Signer{p.kid: p.key})
		if change != nil {
			change(n)
		}
	})
	return bank{p, w.newHolder()}
}

// post posts a form with a proof and with an assertion. pairs change the assertion's claims.
func (b bank) post(t *testing.T, path string, form url.Values, pairs ...any) reply {
	t.Helper()
	form.Set("client_assertion", b.assertion(t, pairs...))
	form.Set("client_assertion_type", idp.AssertionType)
	return b.party.w.postProven(path, b.proof("POST", path, ""), form)
}

// code signs ada in with a pushed request, and returns the code.
func (b bank) code(t *testing.T) string {
	t.Helper()
	pushed := b.post(t, "/oauth/par", request(b.c, "scope", "openid offline_access"))
	if pushed.status != http.StatusCreated {
		t.Fatalf("pushing: %d %s, want 201", pushed.status, pushed.body)
	}
	br := b.party.w.newBrowser()
	uri := text(pushed.json(t)["request_uri"])
	got := br.logIn(br.authorize(reference(b.c, uri)), email, secret)
	wantCode(t, "the pushed request", got)
	wantParam(t, "the pushed request", got, "iss", b.party.w.url+"/")
	return got.param("code")
}

// redemption returns the token request for a code.
func (b bank) redemption(code string) url.Values {
	return with(redemption(b.c, code), "client_id", "")
}

// TestFAPI shows a complete FAPI 2.0 flow. The refresh token is not rotated.
func TestFAPI(t *testing.T) {
	w := newWorld(t)
	b := w.newBank(t, nil)
	code := b.code(t)
	set := b.post(t, "/oauth/token", b.redemption(code)).json(t)
	token := text(set["access_token"])
	if set["token_type"] != "DPoP" {
		t.Fatalf("the token_type is %v, want DPoP", set["token_type"])
	}
	if alg := headerOf(t, text(set["id_token"]))["alg"]; alg != "ES256" {
		t.Fatalf("the ID token is signed with %v, want ES256", alg)
	}
	if sid := idClaims(t, set)["sid"]; sid != nil {
		t.Errorf("a client without logout URIs got the sid %v, want none", sid)
	}
	info := b.userinfo("DPoP", token, b.proof("GET", "/oauth/userinfo", token))
	wantStatus(t, "userinfo with a proof", info, http.StatusOK)

	refresh := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {text(set["refresh_token"])}}
	for range 3 {
		w.pass(20 * 24 * time.Hour) // each use of the refresh token extends its lifetime
		got := b.post(t, "/oauth/token", refresh).json(t)
		if got["token_type"] != "DPoP" {
			t.Errorf("a refresh returned the token_type %v, want DPoP", got["token_type"])
		}
		if got["refresh_token"] != nil {
			t.Errorf("a refresh returned the refresh token %v, want none", got["refresh_token"])
		}
	}

	refresh.Set("client_assertion", b.assertion(t))
	wantError(t, "a refresh without a proof", w.postProven("/oauth/token", "", refresh), "invalid_grant")

	b.holder = w.newHolder() // grants are bound to the client's own key, not to the key of its proofs
	if got := b.post(t, "/oauth/token", refresh).json(t); got["token_type"] != "DPoP" {
		t.Errorf("a refresh with a new key returned %v, want a DPoP token", got)
	}

	again := b.post(t, "/oauth/token", b.redemption(code))
	wantError(t, "redeeming the code again", again, "invalid_grant")
	after := b.post(t, "/oauth/token", refresh)
	wantError(t, "a refresh after the replay of the code", after, "invalid_grant")
}

// TestFAPIErrors shows which requests from a client with the profile fapi2 are rejected.
func TestFAPIErrors(t *testing.T) {
	w := newWorld(t)
	b := w.newBank(t, nil)
	issuer := w.url + "/"
	for name, pairs := range map[string][]any{
		"a list of audiences":      {"aud", []string{issuer}},
		"the token endpoint":       {"aud", w.url + "/oauth/token"},
		"the endpoint itself":      {"aud", w.url + "/oauth/par"},
		"an nbf a minute ahead":    {"nbf", w.now().Add(61 * time.Second).Unix()},
		"an exp in the past":       {"exp", w.now().Add(-5 * time.Minute).Unix()},
		"no sub":                   {"sub", nil},
		"the issuer in upper case": {"aud", strings.ToUpper(issuer)},
	} {
		got := b.post(t, "/oauth/par", request(b.c), pairs...)
		wantStatus(t, name, got, http.StatusUnauthorized)
		wantError(t, name, got, "invalid_client")
	}

	soon := b.post(t, "/oauth/par", request(b.c), "nbf", w.now().Add(8*time.Second).Unix())
	wantStatus(t, "an assertion with an nbf in eight seconds", soon, http.StatusCreated)
	direct := w.newBrowser().authorize(request(b.c))
	wantParam(t, "a request that is not pushed", direct, "error", "invalid_request")
	partial := b.post(t, "/oauth/par", request(b.c, "redirect_uri", ""))
	wantError(t, "a pushed request without a redirect URI", partial, "invalid_request")

	form := b.redemption(b.code(t))
	form.Set("client_assertion", b.assertion(t))
	form.Set("client_assertion_type", idp.AssertionType)
	// The code is bound to the key of the pushed request.
	wantError(t, "a token request without a proof", w.postProven("/oauth/token", "", form), "invalid_grant")

	code := b.code(t)
	w.pass(61 * time.Second)
	late := b.post(t, "/oauth/token", b.redemption(code))
	wantError(t, "redeeming a code after 61 seconds", late, "invalid_grant")
}

// TestFAPISettings shows which settings a client with the profile fapi2 may not have.
func TestFAPISettings(t *testing.T) {
	w := newWorld(t)
	b := w.newBank(t, nil)
	for param, change := range map[string]func(*idp.Client){
		"auth_method":                       func(c *idp.Client) { c.AuthMethod = idp.AuthBasic },
		"pkce":                              func(c *idp.Client) { c.PKCEOptional = true },
		"response_type":                     func(c *idp.Client) { c.ResponseTypes = []string{"code", "id_token"} },
		"grant":                             func(c *idp.Client) { c.Grants = append(c.Grants, idp.GrantDevice) },
		"redirect_uri":                      func(c *idp.Client) { c.RedirectURIs = []string{"http://localhost/cb"} },
		"id_token_alg":                      func(c *idp.Client) { c.IDTokenAlg = "RS256" },
		"userinfo_signed_response_alg":      func(c *idp.Client) { c.UserinfoAlg = "RS256" },
		"request_object_signing_alg":        func(c *idp.Client) { c.RequestObjectAlg = "RS256" },
		"authorization_signed_response_alg": func(c *idp.Client) { c.ResponseAlg = "RS256" },
	} {
		c := b.c
		c.ID, c.SecretHash = "", ""
		change(&c)
		_, _, err := w.idp.Clients.Create(t.Context(), c)
		wantProblem(t, "an invalid "+param, err, param)
	}

	// A key for RS256 is registered, but may not sign an assertion.
	old := w.newBank(t, nil)
	old.party.alg, old.party.key = jose.RS256, newKey(t, jose.RS256)
	old.c.JWKS = keySet(t, "", map[string]crypto.Signer{old.kid: old.party.key})
	must(t, w.rewrite(old.c))
	wantError(t, "an assertion signed with RS256", old.post(t, "/oauth/par", request(old.c)), "invalid_client")
	old.party.alg = jose.PS256
	got := old.post(t, "/oauth/par", request(old.c))
	wantStatus(t, "an assertion signed with PS256", got, http.StatusCreated)
}

// TestFAPIMessageSigning shows that a client can be required to sign its requests, and can get signed
// responses.
func TestFAPIMessageSigning(t *testing.T) {
	w := newWorld(t)
	b := w.newBank(t, func(n *idp.Client) { n.RequireObject = true })
	unsigned := b.post(t, "/oauth/par", request(b.c))
	wantError(t, "a request that is not signed", unsigned, "invalid_request")

	object := b.sign(t, b.object("response_mode", "jwt"), "typ", "oauth-authz-req+jwt")
	pushed := b.post(t, "/oauth/par", url.Values{"request": {object}}).json(t)
	br := w.newBrowser()
	got := br.logIn(br.authorize(reference(b.c, text(pushed["request_uri"]))), email, secret)
	if n := len(got.parameters()); n != 1 {
		t.Fatalf("the response is %v, want one parameter", got.parameters())
	}
	response := got.param("response")
	if alg := headerOf(t, response)["alg"]; alg != "ES256" {
		t.Fatalf("the response is signed with %v, want ES256", alg)
	}
	claims := payload(t, response)
	if claims["iss"] != w.url+"/" {
		t.Fatalf("the iss in the response is %v, want %s/", claims["iss"], w.url)
	}

	tokens := b.post(t, "/oauth/token", b.redemption(text(claims["code"]))).json(t)
	if tokens["token_type"] != "DPoP" {
		t.Errorf("the token_type is %v, want DPoP", tokens["token_type"])
	}
}

// introspect introspects a token. accept is the value of the Accept header.
func (b bank) introspect(t *testing.T, token, accept string) reply {
	t.Helper()
	form := url.Values{
		"token":                 {token},
		"client_assertion":      {b.assertion(t)},
		"client_assertion_type": {idp.AssertionType},
	}
	w := b.party.w
	req, err := http.NewRequest(http.MethodPost, w.url+"/oauth/introspect", strings.NewReader(form.Encode()))
	must(t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", accept)
	return w.newBrowser().do(req)
}

// TestSignedIntrospection shows when introspection responses are signed (RFC 9701, section 5). A signed
// response is only for the client that requested it. It contains no sub and no exp, so it cannot be used
// as another kind of token.
func TestSignedIntrospection(t *testing.T) {
	w := newWorld(t)
	b, other := w.newBank(t, nil), w.newBank(t, func(n *idp.Client) { n.IDTokenAlg = keys.PS256 })
	token := text(b.post(t, "/oauth/token", b.redemption(b.code(t))).json(t)["access_token"])
	const kind = "application/token-introspection+jwt"

	for _, tt := range []struct {
		name       string
		asks       bank
		accept     string
		wantAlg    jose.SignatureAlgorithm
		wantActive bool
	}{
		{name: "the client", asks: b, accept: kind, wantAlg: jose.ES256, wantActive: true},
		{
			name:       "a preference for a signed response",
			asks:       b,
			accept:     "application/json;q=0.5, Application/Token-Introspection+JWT;q=0.9",
			wantAlg:    jose.ES256,
			wantActive: true,
		},
		{name: "another client", asks: other, accept: kind, wantAlg: jose.PS256, wantActive: false},
	} {
		got := tt.asks.introspect(t, token, tt.accept)
		wantHeader(t, tt.name, got, "Content-Type", kind)
		if typ := headerOf(t, got.body)["typ"]; typ != "token-introspection+jwt" {
			t.Errorf("%s: the typ is %v, want token-introspection+jwt", tt.name, typ)
		}

		claims := w.verified(got.body, tt.wantAlg)
		if len(claims) != 4 {
			t.Errorf("%s: the claims are %v, want aud, iat, iss and token_introspection", tt.name, claims)
		}
		if claims["iss"] != w.url+"/" {
			t.Errorf("%s: the iss is %v, want %s/", tt.name, claims["iss"], w.url)
		}
		if claims["aud"] != tt.asks.c.ID {
			t.Errorf("%s: the aud is %v, want %s", tt.name, claims["aud"], tt.asks.c.ID)
		}
		issued, _ := claims["iat"].(float64)
		if age := time.Since(time.Unix(int64(issued), 0)); age.Abs() > time.Hour {
			t.Errorf("%s: the response was issued %v ago, want now", tt.name, age)
		}

		about, _ := claims["token_introspection"].(map[string]any)
		if about["active"] != tt.wantActive {
			t.Errorf("%s: active is %v, want %t", tt.name, about["active"], tt.wantActive)
		}
		if tt.wantActive && about["cnf"] == nil {
			t.Errorf("%s: the token has no cnf, want one", tt.name)
		}
		if !tt.wantActive && len(about) != 1 {
			t.Errorf("%s: the token is %v, want only active", tt.name, about)
		}

		info := w.userinfo(got.body)
		wantStatus(t, "signed introspection as an access token", info, http.StatusUnauthorized)
	}

	for _, accept := range []string{"application/json", "*/*", "", kind + ";q=0", kind + "; q=0.000"} {
		got := b.introspect(t, token, accept)
		if sent := got.header.Get("Content-Type"); !strings.HasPrefix(sent, "application/json") {
			t.Errorf("for %q, the Content-Type is %q, want application/json", accept, sent)
		}
		if active := got.json(t)["active"]; active != true {
			t.Errorf("for %q, active is %v, want true", accept, active)
		}
	}
}

// verified returns the claims of a token that one of the server's keys signed with alg.
func (w *world) verified(token string, alg jose.SignatureAlgorithm) (claims map[string]any) {
	w.t.Helper()
	var set jose.JSONWebKeySet
	must(w.t, json.Unmarshal([]byte(w.newBrowser().get("/oauth/jwks").body), &set))
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{alg})
	must(w.t, err)
	must(w.t, parsed.Claims(set, &claims))
	return claims
}
