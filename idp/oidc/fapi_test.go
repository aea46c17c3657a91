package oidc_test

import (
	"context"
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
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/keys"
)

// A bank is a client with the profile fapi2. It has a key for its assertions and another key for
// its proofs.
type bank struct {
	party
	holder
}

func (w *world) bank(t *testing.T, change func(*idp.Client)) bank {
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
	return bank{p, w.holder()}
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
	br := b.party.w.browser()
	uri := text(pushed.json(t)["request_uri"])
	got := br.logIn(br.authorize(reference(b.c, uri)), email, secret)
	if got.param("code") == "" || got.param("iss") != b.party.w.url+"/" {
		t.Fatalf("the response is %v, want a code and iss", got.parameters())
	}
	return got.param("code")
}

// redemption returns the token request for a code.
func (b bank) redemption(code string) url.Values {
	return url.Values{"grant_type": {"authorization_code"}, "code": {code}, "code_verifier": {verifier},
		"redirect_uri": {callback}}
}

// TestFAPI shows a complete FAPI 2.0 flow. The refresh token is not rotated.
func TestFAPI(t *testing.T) {
	w := newWorld(t)
	b := w.bank(t, nil)
	code := b.code(t)
	set := b.post(t, "/oauth/token", b.redemption(code)).json(t)
	token := text(set["access_token"])
	if set["token_type"] != "DPoP" || header(t, text(set["id_token"]))["alg"] != "ES256" {
		t.Fatalf("the tokens are %v", set)
	}
	if sid := idClaims(t, set)["sid"]; sid != nil {
		t.Errorf("a client without logout URIs got the sid %v", sid)
	}
	if got := b.userinfo("DPoP", token, b.proof("GET", "/oauth/userinfo", token)); got.status != http.StatusOK {
		t.Errorf("userinfo with a proof = %d %s, want 200", got.status, got.body)
	}

	refresh := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {text(set["refresh_token"])}}
	for range 3 {
		w.pass(20 * 24 * time.Hour) // each use of the refresh token extends its lifetime
		got := b.post(t, "/oauth/token", refresh).json(t)
		if got["token_type"] != "DPoP" || got["refresh_token"] != nil {
			t.Errorf("the refresh returned %v, want a DPoP token and no new refresh token", got)
		}
	}

	refresh.Set("client_assertion", b.assertion(t))
	if got := w.postProven("/oauth/token", "", refresh).json(t); got["error"] != "invalid_grant" {
		t.Errorf("a refresh without a proof returned %v, want invalid_grant", got)
	}

	b.holder = w.holder() // the client's own key binds its grants
	if got := b.post(t, "/oauth/token", refresh).json(t); got["token_type"] != "DPoP" {
		t.Errorf("a refresh with a new key returned %v, want a DPoP token", got)
	}

	if got := b.post(t, "/oauth/token", b.redemption(code)).json(t); got["error"] != "invalid_grant" {
		t.Errorf("redeeming the code again returned %v, want invalid_grant", got)
	}
	if got := b.post(t, "/oauth/token", refresh).json(t); got["error"] != "invalid_grant" {
		t.Errorf("a refresh after the replay of the code returned %v, want invalid_grant", got)
	}
}

// TestFAPIErrors shows which requests are rejected from clients with the profile, although other
// clients may send them.
func TestFAPIErrors(t *testing.T) {
	w := newWorld(t)
	b := w.bank(t, nil)
	issuer := w.url + "/"
	for name, pairs := range map[string][]any{
		"a list of audiences":      {"aud", []string{issuer}},
		"the token endpoint":       {"aud", w.url + "/oauth/token"},
		"the endpoint itself":      {"aud", w.url + "/oauth/par"},
		"an nbf in over a minute":  {"nbf", w.now().Add(61 * time.Second).Unix()},
		"an exp of a while ago":    {"exp", w.now().Add(-5 * time.Minute).Unix()},
		"no sub":                   {"sub", nil},
		"the issuer in other case": {"aud", strings.ToUpper(issuer)},
	} {
		got := b.post(t, "/oauth/par", request(b.c), pairs...)
		if got.status != 401 || got.json(t)["error"] != "invalid_client" {
			t.Errorf("%s: %d %s, want invalid_client", name, got.status, got.body)
		}
	}

	if got := b.post(t, "/oauth/par", request(b.c), "nbf", w.now().Add(8*time.Second).Unix()); got.status != 201 {
		t.Errorf("an assertion with an nbf in eight seconds = %d %s, want 201", got.status, got.body)
	}
	if got := w.browser().authorize(request(b.c)); got.param("error") != "invalid_request" {
		t.Errorf("a request that is not pushed: %v, want invalid_request", got.parameters())
	}

	if got := b.post(t, "/oauth/par", request(b.c, "redirect_uri", "")); got.json(t)["error"] != "invalid_request" {
		t.Errorf("a pushed request without a redirect URI returned %s, want invalid_request", got.body)
	}

	form := b.redemption(b.code(t))
	form.Set("client_assertion", b.assertion(t))
	form.Set("client_assertion_type", idp.AssertionType)
	// The code is bound to the key of the pushed request.
	if got := w.postProven("/oauth/token", "", form); got.json(t)["error"] != "invalid_grant" {
		t.Errorf("a token request without a proof returned %s, want invalid_grant", got.body)
	}
	late := b.code(t)
	w.pass(61 * time.Second)
	if got := b.post(t, "/oauth/token", b.redemption(late)); got.json(t)["error"] != "invalid_grant" {
		t.Errorf("redeeming a code after 61 seconds returned %s, want invalid_grant", got.body)
	}
}

// TestFAPISettings shows which settings a client with the profile may not have.
func TestFAPISettings(t *testing.T) {
	w := newWorld(t)
	b := w.bank(t, nil)
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
		_, _, err := w.idp.Clients.Create(context.Background(), c)
		if p := problem.First(err); p == nil || p.Param != param {
			t.Errorf("an invalid %s: %v, want an error about it", param, err)
		}
	}

	// A key for RS256 is registered, but may not sign an assertion.
	old := w.bank(t, nil)
	old.party.alg, old.party.key = jose.RS256, newKey(t, jose.RS256)
	old.c.JWKS = keySet(t, "", map[string]crypto.Signer{old.kid: old.party.key})
	must(t, w.rewrite(old.c))
	if got := old.post(t, "/oauth/par", request(old.c)); got.json(t)["error"] != "invalid_client" {
		t.Errorf("an assertion signed with RS256 returned %s, want invalid_client", got.body)
	}
	old.party.alg = jose.PS256
	if got := old.post(t, "/oauth/par", request(old.c)); got.status != http.StatusCreated {
		t.Errorf("an assertion signed with PS256 returned %s, want 201", got.body)
	}
}

// TestFAPIMessageSigning shows signed requests and responses.
func TestFAPIMessageSigning(t *testing.T) {
	w := newWorld(t)
	b := w.bank(t, func(n *idp.Client) { n.RequireObject = true })
	if got := b.post(t, "/oauth/par", request(b.c)); got.json(t)["error"] != "invalid_request" {
		t.Errorf("a request that is not signed: %s, want invalid_request", got.body)
	}

	object := b.sign(t, b.object("response_mode", "jwt"), "typ", "oauth-authz-req+jwt")
	pushed := b.post(t, "/oauth/par", url.Values{"request": {object}}).json(t)
	br := w.browser()
	got := br.logIn(br.authorize(reference(b.c, text(pushed["request_uri"]))), email, secret)
	claims := payload(t, got.param("response"))
	if len(got.parameters()) != 1 || claims["iss"] != w.url+"/" || header(t, got.param("response"))["alg"] != "ES256" {
		t.Fatalf("the response is %v with %v", got.parameters(), claims)
	}
	set := b.post(t, "/oauth/token", b.redemption(text(claims["code"]))).json(t)
	if set["token_type"] != "DPoP" {
		t.Errorf("the tokens are %v", set)
	}
}

// introspect introspects a token. accept is the value of the Accept header.
func (b bank) introspect(t *testing.T, token, accept string) reply {
	t.Helper()
	form := url.Values{"token": {token}, "client_assertion": {b.assertion(t)},
		"client_assertion_type": {idp.AssertionType}}
	w := b.party.w
	req, err := http.NewRequest(http.MethodPost, w.url+"/oauth/introspect", strings.NewReader(form.Encode()))
	must(t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", accept)
	return w.browser().do(req)
}

// TestSignedIntrospection shows signed introspection responses (RFC 9701, section 5). A response is
// only for the client that requested it. It contains no sub and no exp, so it cannot be used as
// another kind of token.
func TestSignedIntrospection(t *testing.T) {
	w := newWorld(t)
	b, other := w.bank(t, nil), w.bank(t, func(n *idp.Client) { n.IDTokenAlg = keys.PS256 })
	token := text(b.post(t, "/oauth/token", b.redemption(b.code(t))).json(t)["access_token"])
	const kind = "application/token-introspection+jwt"

	for _, tt := range []struct {
		asks   bank
		accept string
		alg    jose.SignatureAlgorithm
		active bool
	}{
		{b, kind, jose.ES256, true},
		{b, "application/json;q=0.5, Application/Token-Introspection+JWT;q=0.9", jose.ES256, true},
		{other, kind, jose.PS256, false},
	} {
		seen := tt.asks.introspect(t, token, tt.accept)
		claims := w.verified(seen.body, tt.alg)
		about, _ := claims["token_introspection"].(map[string]any)
		issued, _ := claims["iat"].(float64)
		if seen.header.Get("Content-Type") != kind || header(t, seen.body)["typ"] != "token-introspection+jwt" ||
			claims["iss"] != w.url+"/" || claims["aud"] != tt.asks.c.ID || len(claims) != 4 ||
			time.Since(time.Unix(int64(issued), 0)).Abs() > time.Hour {
			t.Errorf("introspection: %v %v, want a JWT for the client", seen.header, claims)
		}
		if about["active"] != tt.active || tt.active != (about["cnf"] != nil) || !tt.active && len(about) != 1 {
			t.Errorf("the token is %v, want active: %t", about, tt.active)
		}

		if got := w.userinfo(seen.body); got.status != http.StatusUnauthorized {
			t.Errorf("signed introspection as an access token: %d, want 401", got.status)
		}
	}

	for _, accept := range []string{"application/json", "*/*", "", kind + ";q=0"} {
		seen := b.introspect(t, token, accept)
		if !strings.HasPrefix(seen.header.Get("Content-Type"), "application/json") || seen.json(t)["active"] != true {
			t.Errorf("for %q: %v %s, want JSON", accept, seen.header, seen.body)
		}
	}
}

// verified returns the claims of a token that one of the server's keys signed with alg.
func (w *world) verified(token string, alg jose.SignatureAlgorithm) (claims map[string]any) {
	w.t.Helper()
	var set jose.JSONWebKeySet
	must(w.t, json.Unmarshal([]byte(w.browser().get("/oauth/jwks").body), &set))
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{alg})
	must(w.t, err)
	must(w.t, parsed.Claims(set, &claims))
	return claims
}
