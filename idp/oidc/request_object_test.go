package oidc_test

import (
	"crypto"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/selvage/selvage/idp"
)

// signer registers an app that signs its authorization requests.
func (w *world) signer(t testing.TB, change func(*idp.Client)) party {
	t.Helper()
	p := party{w: w, kid: "k1", alg: jose.ES256, key: newKey(t, jose.ES256)}
	p.c, _ = w.client(func(n *idp.Client) {
		n.JWKS = keySet(t, "", map[string]crypto.Signer{p.kid: p.key})
		if change != nil {
			change(n)
		}
	})
	return p
}

// object returns the claims of a valid request object. pairs change them; a nil value removes a
// claim.
func (p party) object(pairs ...any) map[string]any {
	claims := map[string]any{}
	for name := range request(p.c) {
		claims[name] = request(p.c).Get(name)
	}
	now := p.w.now()
	claims["iss"], claims["aud"] = p.c.ID, p.w.url+"/"
	claims["nbf"], claims["exp"] = now.Unix(), now.Add(time.Minute).Unix()
	for i := 0; i < len(pairs); i += 2 {
		if claims[pairs[i].(string)] = pairs[i+1]; pairs[i+1] == nil {
			delete(claims, pairs[i].(string))
		}
	}
	return claims
}

// TestRequestObject shows that only the parameters in a signed request object count.
func TestRequestObject(t *testing.T) {
	w := newWorld(t)
	p := w.signer(t, nil)
	b := w.browser()
	object := p.sign(t, p.object("state", "inside", "max_age", 10000, "resource", []string{w.url + "/"},
		"claims", map[string]any{"id_token": map[string]any{"email": nil}}, "scope", "openid email"),
		"typ", "oauth-authz-req+jwt")
	got := b.authorize(request(p.c, "request", object, "state", "outside", "redirect_uri", "", "scope", "openid Fax"))
	got = b.logIn(got, email, secret)
	if got.param("state") != "inside" {
		t.Fatalf("the response is %v", got.parameters())
	}

	set := w.redeem(p.c, got.param("code")).json(t)
	if id := idClaims(t, set); set["scope"] != "openid email" || id["email"] != email {
		t.Errorf("scope %v, ID token %v, want openid email and the email", set["scope"], id)
	}

	// The same object may be pushed.
	uri := w.pushed(p.c, "request", p.sign(t, p.object("state", "pushed")))
	if got := b.authorize(reference(p.c, uri)); got.param("state") != "pushed" {
		t.Errorf("a pushed object: %v, want state=pushed", got.parameters())
	}
}

// TestRequestObjectErrors shows that altered, stale and other clients' request objects are refused.
// The error is sent where the client expects it.
func TestRequestObjectErrors(t *testing.T) {
	w := newWorld(t)
	p := w.signer(t, func(n *idp.Client) { n.RequestObjectAlg = "ES256" })
	other := w.signer(t, nil)
	unkeyed, _ := w.client(nil)
	good, now := p.sign(t, p.object()), w.now()
	const invalid = "invalid_request_object"
	for name, tt := range map[string]struct{ object, code string }{
		"unsigned":                 {none(t, p.object()), invalid},
		"altered":                  {good[:len(good)-4] + "AAAA", invalid},
		"of another client's key":  {other.sign(t, p.object()), invalid},
		"a different alg":          {p.sign(t, p.object(), "alg", "RS256"), invalid},
		"a different typ":          {p.sign(t, p.object(), "typ", "at+jwt"), invalid},
		"an embedded key":          {other.sign(t, p.object(), "jwk", "x"), invalid},
		"expired":                  {p.sign(t, p.object("exp", now.Add(-time.Second).Unix())), invalid},
		"of tomorrow":              {p.sign(t, p.object("nbf", now.Add(24*time.Hour).Unix())), invalid},
		"for another server":       {p.sign(t, p.object("aud", "https://evil.example/")), invalid},
		"by another client":        {p.sign(t, p.object("iss", other.c.ID)), invalid},
		"of another client_id":     {p.sign(t, p.object("client_id", other.c.ID)), invalid},
		"with a request":           {p.sign(t, p.object("request", good)), invalid},
		"with a request_uri":       {p.sign(t, p.object("request_uri", "urn:x")), invalid},
		"with the client as sub":   {p.sign(t, p.object("sub", p.c.ID)), invalid},
		"with an unknown response": {p.sign(t, p.object("response_type", "none")), "unsupported_response_type"},
		"without a challenge":      {p.sign(t, p.object("code_challenge", nil)), "invalid_request"},
	} {
		got := w.browser().authorize(request(p.c, "request", tt.object))
		if got.param("error") != tt.code || got.param("state") != "s" {
			t.Errorf("%s: %d %v, want %s", name, got.status, got.parameters(), tt.code)
		}
	}

	if got := w.browser().authorize(request(unkeyed, "request", good)); got.param("error") != "request_not_supported" {
		t.Errorf("a client without keys: %v, want request_not_supported", got.parameters())
	}

	// The browser is not redirected if the redirect URI outside the object is missing, or if the
	// one in the object is not registered.
	for name, v := range map[string]string{
		"invalid, and no address outside": good[:len(good)-4] + "AAAA",
		"a foreign address inside":        p.sign(t, p.object("redirect_uri", "https://evil.example/")),
		"no address at all":               p.sign(t, p.object("redirect_uri", nil)),
	} {
		got := w.browser().authorize(request(p.c, "redirect_uri", "", "request", v))
		if got.status != 400 || got.location != nil {
			t.Errorf("%s: %d %v, want 400 and no redirect", name, got.status, got.location)
		}
	}
}

// none returns claims as an unsigned JWT.
func none(t *testing.T, claims map[string]any) string {
	t.Helper()
	raw, err := json.Marshal(claims)
	must(t, err)
	return "eyJhbGciOiJub25lIn0." + base64.RawURLEncoding.EncodeToString(raw) + "."
}

// TestRequestObjectRequired shows that a client that must sign its requests must also include their
// audience and lifetime.
func TestRequestObjectRequired(t *testing.T) {
	w := newWorld(t)
	p := w.signer(t, func(n *idp.Client) { n.RequireObject = true })
	if got := w.browser().authorize(request(p.c)); got.param("error") != "invalid_request" {
		t.Errorf("not signed: %v, want invalid_request", got.parameters())
	}
	if got := w.push(p.c); got.json(t)["error"] != "invalid_request" {
		t.Errorf("pushed, not signed: %s, want invalid_request", got.body)
	}

	hour := w.now().Add(time.Hour + time.Minute).Unix()
	for name, object := range map[string]string{
		"no exp": p.sign(t, p.object("exp", nil)), "no nbf": p.sign(t, p.object("nbf", nil)),
		"no aud": p.sign(t, p.object("aud", nil)), "no iss": p.sign(t, p.object("iss", nil)),
		"valid for too long": p.sign(t, p.object("exp", hour)),
	} {
		got := w.browser().authorize(request(p.c, "request", object))
		if got.param("error") != "invalid_request_object" {
			t.Errorf("%s: %v, want invalid_request_object", name, got.parameters())
		}
	}
	if got := w.browser().authorize(request(p.c, "request", p.sign(t, p.object()))); got.status != 200 {
		t.Errorf("complete: %d %v, want 200", got.status, got.parameters())
	}
}

// TestRequestURI shows that request objects are only fetched from registered URLs.
func TestRequestURI(t *testing.T) {
	w := newWorld(t)
	var fetched int
	var body string
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		fetched++
		_, _ = rw.Write([]byte(body))
	}))
	t.Cleanup(srv.Close)
	p := w.signer(t, func(n *idp.Client) { n.RequestURIs = []string{srv.URL + "/object"} })

	body = p.sign(t, p.object("state", "fetched")) + "\n"
	b := w.browser()
	got := b.logIn(b.authorize(reference(p.c, srv.URL+"/object")), email, secret)
	if got.param("state") != "fetched" || got.param("code") == "" {
		t.Errorf("the response is %v", got.parameters())
	}

	fetched = 0
	for _, uri := range []string{srv.URL + "/other", srv.URL + "/object#x", "http://169.254.169.254/"} {
		got := w.browser().authorize(request(p.c, "request_uri", uri))
		if got.param("error") != "invalid_request_uri" || fetched > 0 {
			t.Errorf("%s: %v after %d fetches, want invalid_request_uri and no fetch", uri, got.parameters(), fetched)
		}
	}
	body = strings.Repeat("x", 17<<10)
	if got := w.browser().authorize(request(p.c, "request_uri", srv.URL+"/object")); got.param("error") !=
		"invalid_request_uri" {
		t.Errorf("a request object of 17 KiB: %v, want invalid_request_uri", got.parameters())
	}
}

// TestSignedResponse shows that responses and errors are signed if the client asks for it.
func TestSignedResponse(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(func(n *idp.Client) { n.ResponseAlg = "ES256" })
	b := w.browser()
	b.code(c)
	for mode, sign := range map[string]string{"jwt": "?", "query.jwt": "?", "fragment.jwt": "#", "form_post.jwt": ""} {
		for _, v := range []string{"none", "none login"} {
			got := b.authorize(request(c, "response_mode", mode, "prompt", v))
			if sign == "" != (got.location == nil) ||
				sign != "" && !strings.HasPrefix(got.location.String(), callback+sign) {
				t.Fatalf("%s: %d %v", mode, got.status, got.location)
			}

			claims := payload(t, got.param("response"))
			if len(got.parameters()) != 1 ||
				claims["iss"] != w.url+"/" || claims["aud"] != c.ID || claims["state"] != "s" ||
				(claims["code"] == nil) != (v != "none") || (claims["error"] == nil) != (v == "none") {
				t.Errorf("%s, prompt %s: %v with %v", mode, v, got.parameters(), claims)
			}

			if life := claims["exp"].(float64) - float64(w.now().Unix()); life < 590 || life > 610 {
				t.Errorf("%s: valid for %v seconds, want 600", mode, life)
			}
			if head := header(t, got.param("response")); head["alg"] != "ES256" {
				t.Errorf("%s: header %v, want alg ES256", mode, head)
			}
		}
	}

	signed := b.authorize(request(c, "response_mode", "jwt")).param("response")
	other := w.browser().authorize(request(c, "id_token_hint", signed, "prompt", "none"))
	if other.param("error") != "login_required" {
		t.Errorf("a response as a hint: %v, want login_required", other.parameters())
	}
	token := w.redeem(c, text(payload(t, signed)["code"]))
	if token.status != http.StatusOK {
		t.Errorf("redeeming: %d %s, want 200", token.status, token.body)
	}
	if got := w.userinfo(signed); got.status != http.StatusUnauthorized {
		t.Errorf("a response as an access token: %d, want 401", got.status)
	}
}

// header returns the header of a JWT.
func header(t *testing.T, token string) (head map[string]any) {
	t.Helper()
	first, _, _ := strings.Cut(token, ".")
	raw, err := base64.RawURLEncoding.DecodeString(first)
	must(t, err)
	must(t, json.Unmarshal(raw, &head))
	return head
}
