package oidc_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/selvage/selvage/idp"
)

// A party is a client with its own keys.
type party struct {
	w   *world
	c   idp.Client
	kid string
	alg jose.SignatureAlgorithm
	key crypto.Signer
}

// newKey generates a key for an algorithm.
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

// keySet returns a JWKS with keys, which maps the kid of each key to the key. alg may be "".
func keySet(t testing.TB, alg string, keys map[string]crypto.Signer) json.RawMessage {
	t.Helper()
	set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{}}
	for kid, key := range keys {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: key.Public(), KeyID: kid, Algorithm: alg})
	}
	raw, err := json.Marshal(set)
	must(t, err)
	return raw
}

// newParty registers a service whose public key is stored with the client.
func (w *world) newParty(t *testing.T, alg jose.SignatureAlgorithm) party {
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
	claims := map[string]any{
		"iss": p.c.ID,
		"sub": p.c.ID,
		"aud": p.w.url + "/",
		"iat": now.Unix(),
		"exp": now.Add(time.Minute).Unix(),
		"jti": rand.Text(),
	}
	return override(claims, pairs)
}

// override sets members of a JSON object, and returns it. pairs are names and values; the value nil
// removes a member.
func override(object map[string]any, pairs []any) map[string]any {
	for pair := range slices.Chunk(pairs, 2) {
		name, value := pair[0].(string), pair[1]
		object[name] = value
		if value == nil {
			delete(object, name)
		}
	}
	return object
}

// sign returns a signed JWT with claims. head contains additional header fields.
func (p party) sign(t testing.TB, claims map[string]any, head ...any) string {
	t.Helper()
	options := (&jose.SignerOptions{}).WithHeader("kid", p.kid)
	for pair := range slices.Chunk(head, 2) {
		options = options.WithHeader(jose.HeaderKey(pair[0].(string)), pair[1])
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: p.alg, Key: p.key}, options)
	must(t, err)
	raw, err := json.Marshal(claims)
	must(t, err)
	jws, err := signer.Sign(raw)
	must(t, err)
	token, err := jws.CompactSerialize()
	must(t, err)
	return token
}

// assertion returns an assertion that is valid except for the changes in pairs; see claims.
func (p party) assertion(t *testing.T, pairs ...any) string { return p.sign(t, p.claims(pairs...)) }

// ask requests a token, and authenticates with an assertion.
func (p party) ask(assertion string, pairs ...string) reply {
	p.w.t.Helper()
	form := url.Values{
		"grant_type":            {"client_credentials"},
		"client_assertion":      {assertion},
		"client_assertion_type": {idp.AssertionType},
	}
	return p.w.newBrowser().post("/oauth/token", with(form, pairs...))
}
