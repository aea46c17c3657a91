package oidc_test

import (
	"crypto"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/selvage/selvage/idp"
)

// signEd signs claims with Ed25519. The JWT has the header fields in head.
func (p party) signEd(t *testing.T, head map[string]any, claims map[string]any) string {
	t.Helper()
	part := func(v any) string {
		raw, err := json.Marshal(v)
		must(t, err)
		return base64.RawURLEncoding.EncodeToString(raw)
	}
	signed := part(head) + "." + part(claims)
	signature := ed25519.Sign(p.key.(ed25519.PrivateKey), []byte(signed))
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// TestAssertionEd25519 shows that an assertion may use the algorithm name Ed25519 (RFC 9864). It is
// then checked as strictly as an assertion with the name EdDSA.
func TestAssertionEd25519(t *testing.T) {
	w := newWorld(t)
	p, other := w.newParty(t, jose.EdDSA), w.newParty(t, jose.EdDSA)

	head := func(pairs ...any) map[string]any {
		return override(map[string]any{"alg": "Ed25519", "kid": p.kid}, pairs)
	}

	for _, alg := range []string{"", "EdDSA", "Ed25519"} {
		p.c.JWKS = keySet(t, alg, map[string]crypto.Signer{p.kid: p.key})
		must(t, w.rewrite(p.c))
		good := p.signEd(t, head(), p.claims())
		wantStatus(t, "a key with the alg "+alg, p.ask(good), http.StatusOK)
		wantInvalidClient(t, "a replay", p.ask(good))
	}

	// Forgeries are rejected.
	stranger := other
	stranger.c = p.c
	ec := w.newParty(t, jose.ES256)
	for name, assertion := range map[string]string{
		"another client's key":          stranger.signEd(t, head(), p.claims()),
		"an unknown critical header":    p.signEd(t, head("crit", []string{"x"}, "x", 1), p.claims()),
		"another kind of JWT":           p.signEd(t, head("typ", "dpop+jwt"), p.claims()),
		"the algorithm in lower case":   p.signEd(t, head("alg", "ed25519"), p.claims()),
		"an unknown curve":              p.signEd(t, head("alg", "Ed448"), p.claims()),
		"a client with a different key": p.signEd(t, head(), ec.claims()),
		"a truncated assertion":         p.signEd(t, head(), p.claims())[:40] + "x",
	} {
		wantInvalidClient(t, name, p.ask(assertion))
	}

	// The discovery document lists the new name.
	doc := w.newBrowser().get("/.well-known/openid-configuration").json(t)
	for _, name := range []string{
		"token_endpoint_auth_signing_alg_values_supported", "introspection_endpoint_auth_signing_alg_values_supported",
	} {
		if got, want := text(doc[name]), "[RS256 PS256 ES256 EdDSA Ed25519]"; got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if got := idp.AssertionAlgorithms(); got[len(got)-1] != "Ed25519" {
		t.Errorf("AssertionAlgorithms() = %v, want Ed25519 last", got)
	}
}
