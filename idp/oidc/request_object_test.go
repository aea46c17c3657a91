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
	for name, values := range request(p.c) {
		claims[name] = values[0]
	}
	now := p.w.now()
	claims["iss"], claims["aud"] = p.c.ID, p.w.url+"/"
	claims["nbf"], claims["exp"] = now.Unix(), now.Add(time.Minute).Unix()
	return override(claims, pairs)
}

// TestRequestObject shows that only the parameters in a signed request object count.
func TestRequestObject(t *testing.T) {
	w := newWorld(t)
	p := w.signer(t, nil)
	b := w.newBrowser()
	claims := p.object(
		"state", "inside",
		"scope", "openid email",
		"max_age", 10000,
		"resource", []string{w.url + "/"},
		"claims", map[string]any{"id_token": map[string]any{"email": nil}},
	)
	object := p.sign(t, claims, "typ", "oauth-authz-req+jwt")
	page := b.authorize(request(p.c, "request", object, "state", "outside", "redirect_uri", "", "scope", "openid Fax"))
	got := b.logIn(page, email, secret)
	wantParam(t, "a request object", got, "state", "inside")

	tokens := w.redeem(p.c, got.param("code")).json(t)
	if tokens["scope"] != "openid email" {
		t.Errorf("the scope is %v, want openid email", tokens["scope"])
	}
	if id := idClaims(t, tokens); id["email"] != email {
		t.Errorf("the email in the ID token is %v, want %s", id["email"], email)
	}

	// Unknown claims, and claims without a value, have no effect.
	empty := p.object("acr_values", "", "unknown", []string{"a", "b"})
	for _, name := range []string{"claims", "dpop_jkt", "max_age", "nonce", "prompt", "resource", "state"} {
		empty[name] = nil
	}
	got = b.authorize(request(p.c, "request", p.sign(t, empty)))
	wantCode(t, "an object with empty claims", got)
	wantParam(t, "an object with empty claims", got, "state", "")
	if id := idClaims(t, w.redeem(p.c, got.param("code")).json(t)); id["nonce"] != nil {
		t.Errorf("the nonce for an object with empty claims is %v, want none", id["nonce"])
	}

	// The same object may be pushed.
	uri := w.pushed(p.c, "request", p.sign(t, p.object("state", "pushed")))
	wantParam(t, "a pushed object", b.authorize(reference(p.c, uri)), "state", "pushed")
	list := w.push(p.c, "request", p.sign(t, p.object("nonce", []string{"a", "b"})))
	wantStatus(t, "a pushed object with a list", list, http.StatusBadRequest)
	wantError(t, "a pushed object with a list", list, "invalid_request")
}

// TestRequestObjectErrors shows that invalid request objects are refused. The error is sent to the
// redirect URI outside the object, if there is a registered one.
func TestRequestObjectErrors(t *testing.T) {
	w := newWorld(t)
	p := w.signer(t, func(n *idp.Client) { n.RequestObjectAlg = "ES256" })
	other := w.signer(t, nil)
	unkeyed, _ := w.client(nil)
	good, now := p.sign(t, p.object()), w.now()
	const invalid = "invalid_request_object"
	for name, tt := range map[string]struct{ object, wantError string }{
		"unsigned":                      {unsigned(t, p.object()), invalid},
		"altered":                       {good[:len(good)-4] + "AAAA", invalid},
		"signed by another client":      {other.sign(t, p.object()), invalid},
		"a different alg":               {p.sign(t, p.object(), "alg", "RS256"), invalid},
		"a different typ":               {p.sign(t, p.object(), "typ", "at+jwt"), invalid},
		"an embedded key":               {other.sign(t, p.object(), "jwk", "x"), invalid},
		"expired":                       {p.sign(t, p.object("exp", now.Add(-time.Second).Unix())), invalid},
		"from tomorrow":                 {p.sign(t, p.object("nbf", now.Add(24*time.Hour).Unix())), invalid},
		"for another server":            {p.sign(t, p.object("aud", "https://evil.example/")), invalid},
		"with another issuer":           {p.sign(t, p.object("iss", other.c.ID)), invalid},
		"with another client_id":        {p.sign(t, p.object("client_id", other.c.ID)), invalid},
		"with a request":                {p.sign(t, p.object("request", good)), invalid},
		"with a request_uri":            {p.sign(t, p.object("request_uri", "urn:x")), invalid},
		"with the client as sub":        {p.sign(t, p.object("sub", p.c.ID)), invalid},
		"with an unknown response type": {p.sign(t, p.object("response_type", "none")), "unsupported_response_type"},
		"without a challenge":           {p.sign(t, p.object("code_challenge", nil)), "invalid_request"},
	} {
		got := w.newBrowser().authorize(request(p.c, "request", tt.object))
		wantParam(t, "an object "+name, got, "error", tt.wantError)
		wantParam(t, "an object "+name, got, "state", "s")
	}

	withoutKeys := w.newBrowser().authorize(request(unkeyed, "request", good))
	wantParam(t, "a client without keys", withoutKeys, "error", "request_not_supported")

	// The browser is not redirected if the redirect URI outside the object is missing, or if the
	// one in the object is not registered.
	for name, object := range map[string]string{
		"invalid, and no address outside": good[:len(good)-4] + "AAAA",
		"a foreign address inside":        p.sign(t, p.object("redirect_uri", "https://evil.example/")),
		"no address at all":               p.sign(t, p.object("redirect_uri", nil)),
	} {
		got := w.newBrowser().authorize(request(p.c, "redirect_uri", "", "request", object))
		wantStatus(t, name, got, http.StatusBadRequest)
		if got.location != nil {
			t.Errorf("%s: a redirect to %v, want none", name, got.location)
		}
	}
}

// unsigned returns claims as an unsigned JWT.
func unsigned(t *testing.T, claims map[string]any) string {
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
	wantParam(t, "not signed", w.newBrowser().authorize(request(p.c)), "error", "invalid_request")
	wantError(t, "pushed, not signed", w.push(p.c), "invalid_request")

	late := w.now().Add(time.Hour + time.Minute).Unix()
	for name, claims := range map[string]map[string]any{
		"no exp":             p.object("exp", nil),
		"no nbf":             p.object("nbf", nil),
		"no aud":             p.object("aud", nil),
		"no iss":             p.object("iss", nil),
		"valid for too long": p.object("exp", late),
	} {
		got := w.newBrowser().authorize(request(p.c, "request", p.sign(t, claims)))
		wantParam(t, name, got, "error", "invalid_request_object")
	}
	page := w.newBrowser().authorize(request(p.c, "request", p.sign(t, p.object())))
	wantStatus(t, "a complete object", page, http.StatusOK)
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
	b := w.newBrowser()
	got := b.logIn(b.authorize(reference(p.c, srv.URL+"/object")), email, secret)
	wantCode(t, "a fetched object", got)
	wantParam(t, "a fetched object", got, "state", "fetched")

	fetched = 0
	for _, uri := range []string{srv.URL + "/other", srv.URL + "/object#x", "http://169.254.169.254/"} {
		got := w.newBrowser().authorize(request(p.c, "request_uri", uri))
		wantParam(t, uri, got, "error", "invalid_request_uri")
	}
	if fetched != 0 {
		t.Errorf("%d URLs that are not registered were fetched, want none", fetched)
	}
	body = strings.Repeat("x", 17<<10)
	long := w.newBrowser().authorize(request(p.c, "request_uri", srv.URL+"/object"))
	wantParam(t, "a request object of 17 KiB", long, "error", "invalid_request_uri")
}

// TestSignedResponse shows that responses and errors are signed if the client asks for it.
func TestSignedResponse(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(func(n *idp.Client) { n.ResponseAlg = "ES256" })
	b := w.newBrowser()
	b.code(c)
	for mode, sentTo := range map[string]string{ // "" means a form
		"jwt":           callback + "?",
		"query.jwt":     callback + "?",
		"fragment.jwt":  callback + "#",
		"form_post.jwt": "",
	} {
		success := b.authorize(request(c, "response_mode", mode, "prompt", "none"))
		claims := w.wantSigned(mode, success, c, sentTo)
		if claims["code"] == nil || claims["error"] != nil {
			t.Errorf("%s: the response is %v, want a code and no error", mode, claims)
		}
		failure := b.authorize(request(c, "response_mode", mode, "prompt", "none login"))
		claims = w.wantSigned(mode, failure, c, sentTo)
		if claims["code"] != nil || claims["error"] == nil {
			t.Errorf("%s: the response is %v, want an error and no code", mode, claims)
		}
	}

	signed := b.authorize(request(c, "response_mode", "jwt")).param("response")
	other := w.newBrowser().authorize(request(c, "id_token_hint", signed, "prompt", "none"))
	wantParam(t, "a response as a hint", other, "error", "login_required")
	wantStatus(t, "redeeming", w.redeem(c, text(payload(t, signed)["code"])), http.StatusOK)
	wantStatus(t, "a response as an access token", w.userinfo(signed), http.StatusUnauthorized)
}

// wantSigned checks a signed response to the client c, which is valid for ten minutes. It returns
// the claims. sentTo is the beginning of the redirect's target, or "" for a form.
func (w *world) wantSigned(name string, got reply, c idp.Client, sentTo string) map[string]any {
	t := w.t
	t.Helper()
	wantSentTo(t, name, got, sentTo)
	if len(got.parameters()) != 1 {
		t.Errorf("%s: the parameters are %v, want only response", name, got.parameters())
	}

	response := got.param("response")
	if alg := headerOf(t, response)["alg"]; alg != "ES256" {
		t.Errorf("%s: the response is signed with %v, want ES256", name, alg)
	}
	claims := payload(t, response)
	wantMembers(t, name, claims, map[string]any{"iss": w.url + "/", "aud": c.ID, "state": "s"})
	if life := claims["exp"].(float64) - float64(w.now().Unix()); life < 590 || life > 610 {
		t.Errorf("%s: the response is valid for %v seconds, want 600", name, life)
	}
	return claims
}

// headerOf returns the header of a JWT.
func headerOf(t testing.TB, token string) (head map[string]any) {
	t.Helper()
	first, _, _ := strings.Cut(token, ".")
	raw, err := base64.RawURLEncoding.DecodeString(first)
	must(t, err)
	must(t, json.Unmarshal(raw, &head))
	return head
}
