package oidc_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/problem"
)

// A party is a client with its own keys.
type party struct {
	w   *world
	c   idp.Client
	kid string
	alg jose.SignatureAlgorithm
	key crypto.Signer
}

func newKey(t testing.TB, alg jose.SignatureAlgorithm) (key crypto.Signer) {
	t.Helper()
	var err error
	switch alg {
	case jose.ES256:
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case jose.EdDSA:
		_, key, err = ed25519.GenerateKey(rand.Reader)
	default:
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	}
	must(t, err)
	return key
}

// keySet returns a JWKS with the given keys, by kid. alg may be "".
func keySet(t testing.TB, alg string, all map[string]crypto.Signer) json.RawMessage {
	t.Helper()
	set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{}}
	for kid, key := range all {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: key.Public(), KeyID: kid, Algorithm: alg})
	}
	raw, err := json.Marshal(set)
	must(t, err)
	return raw
}

// party registers a service whose public key is stored with the client.
func (w *world) party(t *testing.T, alg jose.SignatureAlgorithm) party {
	t.Helper()
	p := party{w: w, kid: "k1", alg: alg, key: newKey(t, alg)}
	p.c, _ = w.client(func(n *idp.Client) {
		n.Type, n.AuthMethod = idp.Service, idp.AuthPrivateKeyJWT
		n.RedirectURIs, n.Scopes = nil, []string{"Voice"}
		n.JWKS = keySet(t, "", map[string]crypto.Signer{p.kid: p.key})
	})
	return p
}

// claims returns the claims of a valid assertion. pairs change them; a nil value removes a
// claim.
func (p party) claims(pairs ...any) map[string]any {
	now := p.w.now()
	c := map[string]any{"iss": p.c.ID, "sub": p.c.ID, "aud": p.w.url + "/", "iat": now.Unix(),
		"exp": now.Add(time.Minute).Unix(), "jti": rand.Text()}
	for i := 0; i < len(pairs); i += 2 {
		if c[pairs[i].(string)] = pairs[i+1]; pairs[i+1] == nil {
			delete(c, pairs[i].(string))
		}
	}
	return c
}

// sign returns a signed JWT with claims. head contains additional header fields.
func (p party) sign(t testing.TB, claims map[string]any, head ...any) string {
	t.Helper()
	opts := (&jose.SignerOptions{}).WithHeader("kid", p.kid)
	for i := 0; i < len(head); i += 2 {
		opts = opts.WithHeader(jose.HeaderKey(head[i].(string)), head[i+1])
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: p.alg, Key: p.key}, opts)
	must(t, err)
	raw, err := json.Marshal(claims)
	must(t, err)
	jws, err := signer.Sign(raw)
	must(t, err)
	token, err := jws.CompactSerialize()
	must(t, err)
	return token
}

func (p party) assertion(t *testing.T, pairs ...any) string { return p.sign(t, p.claims(pairs...)) }

// ask requests a token, and authenticates with an assertion.
func (p party) ask(assertion string, pairs ...string) reply {
	p.w.t.Helper()
	return p.w.token(append([]string{
		"grant_type", "client_credentials", "client_assertion", assertion, "client_assertion_type", idp.AssertionType,
	}, pairs...)...)
}

func wantInvalidClient(t *testing.T, name string, got reply) {
	t.Helper()
	if got.status != http.StatusUnauthorized || got.json(t)["error"] != "invalid_client" ||
		got.header.Get("WWW-Authenticate") != "" {
		t.Errorf("%s: %d %s, want invalid_client", name, got.status, got.body)
	}
}

// TestAssertion shows that an assertion authenticates a client at each endpoint, with each
// algorithm.
func TestAssertion(t *testing.T) {
	w := newWorld(t)
	for _, alg := range []jose.SignatureAlgorithm{jose.RS256, jose.PS256, jose.ES256, jose.EdDSA} {
		p := w.party(t, alg)
		got := p.ask(p.assertion(t))
		if got.status != http.StatusOK {
			t.Errorf("%s: %d %s, want 200", alg, got.status, got.body)
			continue
		}

		form := func() []string {
			return []string{"client_assertion", p.assertion(t), "client_assertion_type", idp.AssertionType,
				"token", text(got.json(t)["access_token"])}
		}
		if in := w.browser().post("/oauth/introspect", with(url.Values{}, form()...)); in.status != http.StatusOK ||
			in.json(t)["active"] != true {
			t.Errorf("%s: introspection %d %s, want an active token", alg, in.status, in.body)
		}
		if out := w.browser().post("/oauth/revoke", with(url.Values{}, form()...)); out.status != http.StatusOK {
			t.Errorf("%s: revocation %d %s, want 200", alg, out.status, out.body)
		}
		if in := w.browser().post("/oauth/introspect", with(url.Values{}, form()...)); in.json(t)["active"] != false {
			t.Errorf("%s: introspection of a revoked token: %s, want active=false", alg, in.body)
		}
	}
}

// TestAssertionClaims tries correctly signed assertions. Those with wrong claims are rejected, and
// those with unusual but valid claims are accepted.
func TestAssertionClaims(t *testing.T) {
	w := newWorld(t)

	p, other := w.party(t, jose.ES256), w.party(t, jose.ES256)
	now := w.now()
	at := func(d time.Duration) int64 { return now.Add(d).Unix() }

	good := map[string][]any{
		"the token endpoint for an audience": {"aud", w.url + "/oauth/token"},
		"several audiences": {"aud",
			[]string{"https://elsewhere.example", w.url + "/", w.url + "/oauth/token"}},
		"a client clock that is ahead": {"iat", at(8 * time.Second), "nbf", at(8 * time.Second)},
		"no iat":                       {"iat", nil},
		"an exp with a fraction":       {"exp", float64(at(time.Minute)) + .5},
		"an exp ten minutes ahead":     {"exp", at(10 * time.Minute)},
		"an unknown claim":             {"other", map[string]int{"a": 1}},
	}
	for name, pairs := range good {
		if got := p.ask(p.assertion(t, pairs...)); got.status != http.StatusOK {
			t.Errorf("%s: %d %s, want 200", name, got.status, got.body)
		}
	}

	bad := map[string][]any{
		"a different audience":                  {"aud", "https://elsewhere.example/"},
		"the issuer without its slash":          {"aud", w.url},
		"no audience":                           {"aud", nil},
		"an audience that is not text":          {"aud", 1},
		"a different issuer":                    {"iss", other.c.ID},
		"no issuer":                             {"iss", nil},
		"a different subject":                   {"sub", other.c.ID},
		"another client for issuer and subject": {"iss", other.c.ID, "sub", other.c.ID},
		"an unknown client":                     {"iss", "x", "sub", "x"},
		"expired":                               {"exp", at(-time.Second)},
		"expired long ago":                      {"exp", at(-5 * time.Minute)},
		"no exp":                                {"exp", nil},
		"an exp that is text":                   {"exp", "9999999999"},
		"an exp beyond any date":                {"exp", 1e300},
		"a negative exp":                        {"exp", -1},
		"an exp too far ahead":                  {"exp", at(time.Hour)},
		"an nbf a minute ahead":                 {"nbf", at(time.Minute)},
		"an iat a minute ahead":                 {"iat", at(time.Minute), "exp", at(2 * time.Minute)},
		"no jti":                                {"jti", nil},
		"a jti that is not text":                {"jti", 7},
	}
	for name, pairs := range bad {
		wantInvalidClient(t, name, p.ask(p.assertion(t, pairs...)))
	}
}

// TestAssertionForgeries shows that invalid signatures are rejected.
func TestAssertionForgeries(t *testing.T) {
	w := newWorld(t)
	p, other := w.party(t, jose.RS256), w.party(t, jose.RS256)
	stranger := p
	stranger.key = newKey(t, jose.RS256)
	public, err := x509.MarshalPKIXPublicKey(p.key.Public())
	must(t, err)

	// symmetric signs with a public value as if it were a shared secret (RFC 8725, section
	// 2.1).
	symmetric := func(secret []byte) string {
		s, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: secret},
			(&jose.SignerOptions{}).WithHeader("kid", p.kid))
		must(t, err)
		raw, err := json.Marshal(p.claims())
		must(t, err)
		jws, err := s.Sign(raw)
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

	forged := map[string]string{
		"a different key":                     stranger.assertion(t),
		"another client's key":                byOther.assertion(t),
		"an unknown kid":                      renamed.assertion(t),
		"a key in the header":                 embedded,
		"a key set's address in the header":   stranger.sign(t, p.claims(), "jku", "http://127.0.0.1:1/jwks"),
		"HS256 with the public key as secret": symmetric(public),
		"HS256 with the key set as secret":    symmetric(append([]byte{}, p.c.JWKS...)),
		"alg none": part(map[string]any{"alg": "none", "kid": p.kid}) + "." +
			part(p.claims()) + ".",
		"alg None with a signature": part(map[string]any{"alg": "None", "kid": p.kid}) + "." +
			part(p.claims()) + "." + parts[2],
		"no signature":   parts[0] + "." + parts[1] + ".",
		"changed claims": parts[0] + "." + part(p.claims()) + "." + parts[2],
		"an unknown algorithm": part(map[string]any{"alg": "RS384", "kid": p.kid}) + "." +
			parts[1] + "." + parts[2],
		"an algorithm for other keys": part(map[string]any{"alg": "ES256", "kid": p.kid}) + "." +
			parts[1] + "." + parts[2],
		"another kind of JWT":        p.sign(t, p.claims(), "typ", "dpop+jwt"),
		"an unknown critical header": p.sign(t, p.claims(), "crit", []string{"x"}, "x", 1),
		"JSON": `{"payload":"` + parts[1] + `","protected":"` +
			parts[0] + `","signature":"` + parts[2] + `"}`,
		"no JWT":                     "x",
		"more than the allowed size": strings.Repeat("x", 9<<10),
	}

	for name, assertion := range forged {
		wantInvalidClient(t, name, p.ask(assertion))
	}

	// The right JWT type is accepted. A missing kid is also accepted if there is only one key.
	if got := p.ask(p.sign(t, p.claims(), "typ", "client-authentication+jwt")); got.status != http.StatusOK {
		t.Errorf("an assertion with the right JWT type = %d %s, want 200", got.status, got.body)
	}

	anonymous := p
	anonymous.kid = ""
	if got := p.ask(anonymous.assertion(t)); got.status != http.StatusOK {
		t.Errorf("an assertion without a kid, for a set of one key = %d %s, want 200",
			got.status, got.body)
	}
}

// TestAssertionRequests shows that valid assertions in invalid requests are rejected.
func TestAssertionRequests(t *testing.T) {
	w := newWorld(t)
	p, other := w.party(t, jose.ES256), w.party(t, jose.ES256)
	secretive, secret := w.client(func(n *idp.Client) { n.Type, n.AuthMethod = idp.Web, idp.AuthPost })

	// Requests that identify or authenticate the client wrongly are rejected.
	wantInvalidClient(t, "another client's client_id", p.ask(p.assertion(t), "client_id", other.c.ID))
	wantInvalidClient(t, "a different type",
		p.ask(p.assertion(t), "client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:saml2-bearer"))
	wantInvalidClient(t, "no type", p.ask(p.assertion(t), "client_assertion_type", ""))
	wantInvalidClient(t, "only the type", p.ask("", "client_id", p.c.ID))
	wantInvalidClient(t, "neither", w.token("grant_type", "client_credentials", "client_id", p.c.ID))
	wantInvalidClient(t, "a secret of a client without one",
		w.token("grant_type", "client_credentials", "client_id", p.c.ID, "client_secret", "x"))

	// Requests that authenticate the client in two ways are rejected (RFC 6749, section 2.3).
	for name, got := range map[string]reply{
		"a secret as well":         p.ask(p.assertion(t), "client_id", p.c.ID, "client_secret", "x"),
		"another's secret as well": p.ask(p.assertion(t), "client_id", secretive.ID, "client_secret", secret),
		"an empty secret as well": w.browser().post("/oauth/token", url.Values{
			"grant_type": {"client_credentials"}, "client_assertion": {p.assertion(t)},
			"client_assertion_type": {idp.AssertionType}, "client_secret": {""},
		}),
	} {
		if got.status != http.StatusBadRequest || got.json(t)["error"] != "invalid_request" {
			t.Errorf("%s: %d %s, want invalid_request", name, got.status, got.body)
		}
	}

	// An assertion is valid once, and the error for a replay does not contain the assertion.
	good := p.assertion(t)
	if got := p.ask(good, "client_id", p.c.ID); got.status != http.StatusOK {
		t.Errorf("an assertion with the client_id of the same client = %d %s, want 200",
			got.status, got.body)
	}
	if got := p.ask(good); !strings.Contains(got.body, "jti") || strings.Contains(got.body, good) {
		t.Errorf("the error for a replay is %s, want one about the jti, without the assertion", got.body)
	}
}

// verify verifies and uses an assertion.
func verify(t *testing.T, node *idp.Provider, a idp.Assertion) error {
	uses := node.Assertions.Uses()
	if _, err := node.Assertions.Verify(t.Context(), a, uses); err != nil {
		return err
	}
	return uses.Store(t.Context())
}

// TestAssertionOnce shows that an assertion is accepted once, even if it is presented to two
// nodes concurrently.
func TestAssertionOnce(t *testing.T) {
	w := newWorld(t)
	p := w.party(t, jose.EdDSA)
	nodes := []*idp.Provider{w.idp, idp.New(w.idp.Config)}
	a := idp.Assertion{JWT: p.assertion(t), Audiences: []string{w.url + "/"}}

	errs := make([]error, 50)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { errs[i] = verify(t, nodes[i%2], a) })
	}
	all.Wait()

	won := 0
	for _, err := range errs {
		if err == nil {
			won++
		} else if problem.First(err) == nil || problem.First(err).Kind != problem.Unauthenticated {
			t.Errorf("verifying a used assertion = %v, want Unauthenticated", err)
		}
	}
	if won != 1 {
		t.Errorf("%d of %d requests got a token for one assertion, want 1", won, len(errs))
	}

	// The assertion still counts as used after the session store is emptied.
	w.empty()
	if err := verify(t, nodes[1], a); problem.First(err) == nil ||
		problem.First(err).Code != "invalid_client" {
		t.Errorf("verifying a used assertion after emptying the sessions = %v, want an error", err)
	}

	// An assertion past its exp is rejected.
	again := a
	again.JWT = p.assertion(t)
	w.pass(9 * time.Minute)
	if err := verify(t, nodes[1], again); err == nil {
		t.Error("an assertion was accepted nine minutes after its exp")
	}
}

// TestKeySets shows which key sets a client may register.
func TestKeySets(t *testing.T) {
	w := newWorld(t)

	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	must(t, err)
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	must(t, err)
	private, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: newKey(t, jose.ES256),
		KeyID: "k"}}})
	must(t, err)
	good := keySet(t, "", map[string]crypto.Signer{"k": newKey(t, jose.ES256)})

	many := map[string]crypto.Signer{}
	for range 33 {
		many[rand.Text()] = newKey(t, jose.EdDSA)
	}

	register := func(set json.RawMessage, method idp.AuthMethod) error {
		_, secret, err := w.idp.Clients.Create(t.Context(), idp.Client{
			ProjectID: w.project.ID, Type: idp.Service, AuthMethod: method, Metadata: idp.Metadata{JWKS: set},
		})
		if secret != "" {
			t.Errorf("the client has keys, but also a secret")
		}
		return err
	}

	// Unsuitable sets are rejected.
	for name, set := range map[string]json.RawMessage{
		"none": nil, "no JWKS": json.RawMessage(`{"kty":"EC"}`), "no JSON": json.RawMessage(`keys`),
		"empty":         json.RawMessage(`{"keys":[]}`),
		"a private key": private, "a symmetric key": json.RawMessage(`{"keys":[{"kty":"oct","k":"AAAA","kid":"k"}]}`),
		"RSA of 1024 bits":    keySet(t, "", map[string]crypto.Signer{"k": weak}),
		"P-384":               keySet(t, "", map[string]crypto.Signer{"k": p384}),
		"too many keys":       keySet(t, "", many),
		"keys for encryption": json.RawMessage(strings.Replace(string(good), `"kid"`, `"use":"enc","kid"`, 1)),
	} {
		if err := register(set, idp.AuthPrivateKeyJWT); problem.First(err) == nil ||
			problem.First(err).Param != "jwks" {
			t.Errorf("registering %s = %v, want an error about jwks", name, err)
		}
	}

	if err := register(good, idp.AuthPrivateKeyJWT); err != nil {
		t.Errorf("registering a valid set: %v", err)
	}
	if err := register(good, idp.AuthPost); problem.First(err) == nil {
		t.Error("a client with both keys and a secret was registered")
	}

	// Keys of unknown types are ignored, because a client may publish newer types.
	mixed := json.RawMessage(strings.Replace(string(good), `[`, `[{"kty":"AKP","alg":"ML-DSA-44","pub":"AAAA"},`, 1))
	if err := register(mixed, idp.AuthPrivateKeyJWT); err != nil {
		t.Errorf("registering a set with a key of an unknown type: %v", err)
	}
}

// TestKeyAlgorithm shows that a key registered for one algorithm does not verify signatures of
// another, and that a removed key verifies nothing.
func TestKeyAlgorithm(t *testing.T) {
	w := newWorld(t)
	p := w.party(t, jose.RS256)
	p.c.JWKS = keySet(t, "PS256", map[string]crypto.Signer{p.kid: p.key})
	must(t, w.rewrite(p.c))

	wantInvalidClient(t, "RS256 by a key registered for PS256", p.ask(p.assertion(t)))
	p.alg = jose.PS256
	if got := p.ask(p.assertion(t)); got.status != http.StatusOK {
		t.Errorf("a PS256 assertion with a key registered for PS256 = %d %s, want 200",
			got.status, got.body)
	}

	fresh := newKey(t, jose.RS256)
	p.c.JWKS = keySet(t, "", map[string]crypto.Signer{"k2": fresh})
	must(t, w.rewrite(p.c))
	wantInvalidClient(t, "a key that was removed", p.ask(p.assertion(t)))
	p.kid, p.key = "k2", fresh
	if got := p.ask(p.assertion(t)); got.status != http.StatusOK {
		t.Errorf("an assertion with the replacement of the first key = %d %s, want 200",
			got.status, got.body)
	}
}
