package oidc_test

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/idp/oidc"
	"github.com/selvage/selvage/internal/problem"
)

// wantInvalidClient checks that a client that did not use HTTP Basic is refused.
func wantInvalidClient(t *testing.T, name string, got reply) {
	t.Helper()
	wantStatus(t, name, got, http.StatusUnauthorized)
	wantError(t, name, got, "invalid_client")
	wantHeader(t, name, got, "WWW-Authenticate", "")
}

// TestAssertion shows that an assertion authenticates a client at each endpoint, with each
// algorithm.
func TestAssertion(t *testing.T) {
	w := newWorld(t)
	for _, alg := range []jose.SignatureAlgorithm{jose.RS256, jose.PS256, jose.ES256, jose.EdDSA} {
		p := w.newParty(t, alg)
		got := p.ask(p.assertion(t))
		wantStatus(t, "a token with "+string(alg), got, http.StatusOK)
		token := text(got.json(t)["access_token"])

		send := func(path string) reply {
			return w.newBrowser().post(path, url.Values{
				"client_assertion":      {p.assertion(t)},
				"client_assertion_type": {idp.AssertionType},
				"token":                 {token},
			})
		}
		introspected := send("/oauth/introspect")
		wantStatus(t, "introspection with "+string(alg), introspected, http.StatusOK)
		wantMembers(t, "introspection with "+string(alg), introspected.json(t), map[string]any{"active": true})
		wantStatus(t, "revocation with "+string(alg), send("/oauth/revoke"), http.StatusOK)
		revoked := send("/oauth/introspect").json(t)
		wantMembers(t, "introspection of a revoked token with "+string(alg), revoked, map[string]any{"active": false})
	}
}

// TestAssertionClaims shows that correctly signed assertions are rejected if their claims are wrong, and
// accepted if their claims are unusual but valid.
func TestAssertionClaims(t *testing.T) {
	w := newWorld(t)
	p, other := w.newParty(t, jose.ES256), w.newParty(t, jose.ES256)
	now := w.now()
	in := func(d time.Duration) int64 { return now.Add(d).Unix() }
	severalAudiences := []string{"https://elsewhere.example", w.url + "/", w.url + "/oauth/token"}

	for name, pairs := range map[string][]any{
		"the token endpoint as audience": {"aud", w.url + "/oauth/token"},
		"several audiences":              {"aud", severalAudiences},
		"a client clock that is ahead":   {"iat", in(8 * time.Second), "nbf", in(8 * time.Second)},
		"no iat":                         {"iat", nil},
		"an exp with a fraction":         {"exp", float64(in(time.Minute)) + .5},
		"an exp ten minutes ahead":       {"exp", in(10 * time.Minute)},
		"an unknown claim":               {"other", map[string]int{"a": 1}},
	} {
		wantStatus(t, name, p.ask(p.assertion(t, pairs...)), http.StatusOK)
	}

	for name, pairs := range map[string][]any{
		"a different audience":                 {"aud", "https://elsewhere.example/"},
		"the issuer without its slash":         {"aud", w.url},
		"no audience":                          {"aud", nil},
		"an audience that is not text":         {"aud", 1},
		"a different issuer":                   {"iss", other.c.ID},
		"no issuer":                            {"iss", nil},
		"a different subject":                  {"sub", other.c.ID},
		"another client as issuer and subject": {"iss", other.c.ID, "sub", other.c.ID},
		"an unknown client":                    {"iss", "x", "sub", "x"},
		"expired":                              {"exp", in(-time.Second)},
		"expired long ago":                     {"exp", in(-5 * time.Minute)},
		"no exp":                               {"exp", nil},
		"an exp that is text":                  {"exp", "9999999999"},
		"an exp beyond any date":               {"exp", 1e300},
		"a negative exp":                       {"exp", -1},
		"an exp too far ahead":                 {"exp", in(time.Hour)},
		"an nbf a minute ahead":                {"nbf", in(time.Minute)},
		"an iat a minute ahead":                {"iat", in(time.Minute), "exp", in(2 * time.Minute)},
		"no jti":                               {"jti", nil},
		"a jti that is not text":               {"jti", 7},
	} {
		wantInvalidClient(t, name, p.ask(p.assertion(t, pairs...)))
	}
}

// TestAssertionForMTLS shows that the audience of an assertion may be an alias of an endpoint. The
// metadata names these aliases for clients with certificates.
func TestAssertionForMTLS(t *testing.T) {
	w := newWorld(t)
	p := w.newParty(t, jose.ES256)
	const alias = "https://mtls.id.example"
	api, err := oidc.New(oidc.Config{
		Provider:     w.idp,
		Sessions:     w.idp.Sessions,
		Browsers:     w.rows,
		AuthURL:      w.url,
		MTLSURL:      alias,
		Certificates: true,
	})
	must(t, err)
	srv := httptest.NewServer(api.Handler())
	t.Cleanup(srv.Close)

	for audience, want := range map[string]int{
		alias + "/oauth/token": http.StatusOK,
		alias + "/oauth/par":   http.StatusOK,
		w.url + "/oauth/token": http.StatusOK,
		alias + "/":            http.StatusUnauthorized,
		"/oauth/token":         http.StatusUnauthorized,
	} {
		res, err := http.PostForm(srv.URL+"/oauth/token", url.Values{
			"grant_type":            {"client_credentials"},
			"client_assertion":      {p.assertion(t, "aud", audience)},
			"client_assertion_type": {idp.AssertionType},
		})
		must(t, err)
		must(t, res.Body.Close())
		if res.StatusCode != want {
			t.Errorf("an assertion for %s: status %d, want %d", audience, res.StatusCode, want)
		}
	}
}

// TestAssertionForgeries shows that invalid signatures are rejected.
func TestAssertionForgeries(t *testing.T) {
	w := newWorld(t)
	p, other := w.newParty(t, jose.RS256), w.newParty(t, jose.RS256)
	stranger := p
	stranger.key = newKey(t, jose.RS256)
	public, err := x509.MarshalPKIXPublicKey(p.key.Public())
	must(t, err)

	// symmetric signs with a public value as if it were a shared secret (RFC 8725, section
	// 2.1).
	symmetric := func(secret []byte) string {
		options := (&jose.SignerOptions{}).WithHeader("kid", p.kid)
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: secret}, options)
		must(t, err)
		raw, err := json.Marshal(p.claims())
		must(t, err)
		jws, err := signer.Sign(raw)
		must(t, err)
		token, err := jws.CompactSerialize()
		must(t, err)
		return token
	}

	// part encodes one part of a JWT.
	part := func(v any) string {
		raw, err := json.Marshal(v)
		must(t, err)
		return base64.RawURLEncoding.EncodeToString(raw)
	}

	byOther := p
	byOther.key = other.key
	renamed := p
	renamed.kid = "k2"
	embedded := stranger.sign(t, p.claims(), "jwk", jose.JSONWebKey{Key: stranger.key.Public(), KeyID: p.kid})
	parts := strings.Split(p.assertion(t), ".")
	head, claims, signature := parts[0], parts[1], parts[2]
	asJSON := `{"payload":"` + claims + `","protected":"` + head + `","signature":"` + signature + `"}`
	headOf := func(alg string) string { return part(map[string]any{"alg": alg, "kid": p.kid}) }

	for name, assertion := range map[string]string{
		"a different key":                     stranger.assertion(t),
		"another client's key":                byOther.assertion(t),
		"an unknown kid":                      renamed.assertion(t),
		"a key in the header":                 embedded,
		"a key set's address in the header":   stranger.sign(t, p.claims(), "jku", "http://127.0.0.1:1/jwks"),
		"HS256 with the public key as secret": symmetric(public),
		"HS256 with the key set as secret":    symmetric(append([]byte{}, p.c.JWKS...)),
		"alg none":                            headOf("none") + "." + part(p.claims()) + ".",
		"alg None with a signature":           headOf("None") + "." + part(p.claims()) + "." + signature,
		"no signature":                        head + "." + claims + ".",
		"changed claims":                      head + "." + part(p.claims()) + "." + signature,
		"an unknown algorithm":                headOf("RS384") + "." + claims + "." + signature,
		"an algorithm for other keys":         headOf("ES256") + "." + claims + "." + signature,
		"another kind of JWT":                 p.sign(t, p.claims(), "typ", "dpop+jwt"),
		"an unknown critical header":          p.sign(t, p.claims(), "crit", []string{"x"}, "x", 1),
		"JSON":                                asJSON,
		"no JWT":                              "x",
		"more than the allowed size":          strings.Repeat("x", 9<<10),
	} {
		wantInvalidClient(t, name, p.ask(assertion))
	}

	// The right JWT type is accepted. A missing kid is also accepted if there is only one key.
	typed := p.ask(p.sign(t, p.claims(), "typ", "client-authentication+jwt"))
	wantStatus(t, "the right JWT type", typed, http.StatusOK)
	anonymous := p
	anonymous.kid = ""
	wantStatus(t, "no kid, for a set of one key", p.ask(anonymous.assertion(t)), http.StatusOK)
}

// TestAssertionRequests shows that a valid assertion in an invalid request is rejected, and that an
// assertion cannot be used twice.
func TestAssertionRequests(t *testing.T) {
	w := newWorld(t)
	p, other := w.newParty(t, jose.ES256), w.newParty(t, jose.ES256)
	withSecret, clientSecret := w.client(func(n *idp.Client) { n.Type, n.AuthMethod = idp.Web, idp.AuthPost })

	// Requests that identify or authenticate the client wrongly are rejected.
	wantInvalidClient(t, "another client's client_id", p.ask(p.assertion(t), "client_id", other.c.ID))
	const saml = "urn:ietf:params:oauth:client-assertion-type:saml2-bearer"
	wantInvalidClient(t, "a different type", p.ask(p.assertion(t), "client_assertion_type", saml))
	wantInvalidClient(t, "no type", p.ask(p.assertion(t), "client_assertion_type", ""))
	wantInvalidClient(t, "only the type", p.ask("", "client_id", p.c.ID))
	bare := w.token("grant_type", "client_credentials", "client_id", p.c.ID)
	wantInvalidClient(t, "neither an assertion nor a secret", bare)
	wantInvalidClient(t, "a secret of a client without one",
		w.token("grant_type", "client_credentials", "client_id", p.c.ID, "client_secret", "x"))

	// Requests that authenticate the client in two ways are rejected (RFC 6749, section 2.3).
	for name, got := range map[string]reply{
		"a secret as well":        p.ask(p.assertion(t), "client_id", p.c.ID, "client_secret", "x"),
		"another client's secret": p.ask(p.assertion(t), "client_id", withSecret.ID, "client_secret", clientSecret),
		"an empty secret as well": w.newBrowser().post("/oauth/token", url.Values{
			"grant_type":            {"client_credentials"},
			"client_assertion":      {p.assertion(t)},
			"client_assertion_type": {idp.AssertionType},
			"client_secret":         {""},
		}),
	} {
		wantStatus(t, name, got, http.StatusBadRequest)
		wantError(t, name, got, "invalid_request")
	}

	// An assertion is valid only once, and the error for a replay does not contain the assertion.
	good := p.assertion(t)
	wantStatus(t, "the client_id of the same client", p.ask(good, "client_id", p.c.ID), http.StatusOK)
	replay := p.ask(good)
	wantText(t, "a replay", replay, "jti")
	wantNoText(t, "a replay", replay, good)
}

// verify verifies and uses an assertion.
func verify(t *testing.T, node *idp.Provider, a idp.Assertion) error {
	uses := node.Assertions.Uses()
	if _, err := node.Assertions.Verify(t.Context(), a, uses); err != nil {
		return err
	}
	return uses.Store(t.Context())
}

// TestAssertionOnce shows that an assertion is accepted only once, even if it is presented to two
// nodes concurrently.
func TestAssertionOnce(t *testing.T) {
	w := newWorld(t)
	p := w.newParty(t, jose.EdDSA)
	nodes := []*idp.Provider{w.idp, idp.New(w.idp.Config)}
	a := idp.Assertion{JWT: p.assertion(t), Audiences: []string{w.url + "/"}}

	errs := make([]error, 50)
	var requests sync.WaitGroup
	for i := range errs {
		requests.Go(func() { errs[i] = verify(t, nodes[i%2], a) })
	}
	requests.Wait()

	accepted := 0
	for _, err := range errs {
		switch {
		case err == nil:
			accepted++
		case !errors.Is(err, problem.Unauthenticated):
			t.Errorf("verifying a used assertion: %v, want Unauthenticated", err)
		}
	}
	if accepted != 1 {
		t.Errorf("%d of %d uses of one assertion were accepted, want 1", accepted, len(errs))
	}

	// The assertion still counts as used after the session store is emptied.
	w.empty()
	if p := problem.First(verify(t, nodes[1], a)); p == nil || p.Code != "invalid_client" {
		t.Errorf("verifying a used assertion after emptying the sessions: %v, want invalid_client", p)
	}

	// An assertion past its exp is rejected.
	late := a
	late.JWT = p.assertion(t)
	w.pass(9 * time.Minute)
	if err := verify(t, nodes[1], late); err == nil {
		t.Error("an assertion was accepted eight minutes after its exp")
	}
}
