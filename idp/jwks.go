package idp

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"
)

// assertionAlgorithms are the algorithms with which clients may sign. All of them are asymmetric:
// with a symmetric algorithm, anyone who knows the public key could sign.
var assertionAlgorithms = []jose.SignatureAlgorithm{jose.RS256, jose.PS256, jose.ES256, jose.EdDSA, ed25519Name}

// ed25519Name is the name of EdDSA with Ed25519 keys (RFC 9864, section 2.2). go-jose knows only
// the name EdDSA.
const ed25519Name jose.SignatureAlgorithm = "Ed25519"

// An ed25519Key is a key that verifies signatures whose algorithm is named Ed25519.
type ed25519Key ed25519.PublicKey

var _ jose.OpaqueVerifier = ed25519Key(nil)

// VerifyPayload returns an error unless k verifies the signature.
func (k ed25519Key) VerifyPayload(payload, signature []byte, alg jose.SignatureAlgorithm) error {
	if alg != ed25519Name || len(k) != ed25519.PublicKeySize {
		return jose.ErrCryptoFailure
	}
	if !ed25519.Verify(ed25519.PublicKey(k), payload, signature) {
		return jose.ErrCryptoFailure
	}
	return nil
}

// verificationKey returns the key in the form that go-jose needs to verify signatures with alg.
func verificationKey(k jose.JSONWebKey, alg jose.SignatureAlgorithm) any {
	if key, ok := k.Key.(ed25519.PublicKey); ok && alg == ed25519Name {
		return ed25519Key(key)
	}
	return k.Key
}

// AssertionAlgorithms returns the algorithms with which clients may sign assertions.
func AssertionAlgorithms() (names []string) {
	for _, alg := range assertionAlgorithms {
		names = append(names, string(alg))
	}
	return names
}

// These are the maximum length of a client's key set in bytes, and its maximum number of keys.
const (
	maxKeySet = 64 << 10
	maxKeys   = 32
)

// A keyFilter reports whether a key in a client's key set is one of the wanted keys.
type keyFilter func(jose.JSONWebKey) bool

// keysOf returns the wanted keys of a client. It may fetch the client's key set.
func (as *Assertions) keysOf(ctx context.Context, c Client, wanted keyFilter) ([]jose.JSONWebKey, error) {
	if c.JWKSURI != "" {
		return as.remoteKeys(ctx, c.JWKSURI, wanted)
	}
	set, err := as.localKeys(c)
	if err != nil {
		return nil, fmt.Errorf("reading the client's key set: %w", err)
	}
	return filterKeys(set.keys, wanted), nil
}

// localKeys returns the key set that is stored with a client, from a cache.
func (as *Assertions) localKeys(c Client) (keySet, error) {
	cached, err := as.local.Load(c.ID, func() (keySet, error) { return readKeySet(c.JWKS) })
	if err != nil {
		return keySet{}, err
	}
	if !bytes.Equal(cached.raw, c.JWKS) { // the client was changed within the last 300 ms
		return readKeySet(c.JWKS)
	}
	return cached, nil
}

// A keySet is a client's JWKS, with the keys in it.
type keySet struct {
	raw  []byte
	keys []jose.JSONWebKey
}

func readKeySet(raw []byte) (keySet, error) {
	keys, err := parseKeySet(raw)
	if err != nil {
		return keySet{}, err
	}
	return keySet{raw: raw, keys: keys}, nil
}

// filterKeys returns the wanted keys in set.
func filterKeys(set []jose.JSONWebKey, wanted keyFilter) (kept []jose.JSONWebKey) {
	for _, k := range set {
		if wanted(k) {
			kept = append(kept, k)
		}
	}
	return kept
}

// matchHeader returns a filter for the keys that match a JWT header with this kid and alg. If kid is
// "", keys with any id match.
func matchHeader(kid string, alg jose.SignatureAlgorithm) keyFilter {
	return func(k jose.JSONWebKey) bool {
		if kid != "" && k.KeyID != kid {
			return false
		}
		if k.Algorithm != "" && !isNamed(k, alg) {
			return false
		}
		return canVerify(k, alg)
	}
}

// isUsable reports whether a key can verify signatures with at least one of the supported
// algorithms.
func isUsable(k jose.JSONWebKey) bool {
	return slices.ContainsFunc(assertionAlgorithms, func(alg jose.SignatureAlgorithm) bool {
		return canVerify(k, alg)
	})
}

// isCertified reports whether a key has a certificate, with which a client may authenticate.
func isCertified(k jose.JSONWebKey) bool { return len(k.Certificates) > 0 }

// isNamed reports whether the alg of key k is alg. The two names of Ed25519 are equivalent.
func isNamed(k jose.JSONWebKey, alg jose.SignatureAlgorithm) bool {
	name := jose.SignatureAlgorithm(k.Algorithm)
	switch alg {
	case ed25519Name, jose.EdDSA:
		return name == ed25519Name || name == jose.EdDSA
	}
	return name == alg
}

// canVerify reports whether a key verifies signatures with alg and is strong enough (RFC 7518,
// sections 3.3 and 3.4).
func canVerify(k jose.JSONWebKey, alg jose.SignatureAlgorithm) bool {
	if k.Use != "" && k.Use != "sig" {
		return false
	}
	switch key := k.Key.(type) {
	case *rsa.PublicKey:
		bits := key.N.BitLen()
		return (alg == jose.RS256 || alg == jose.PS256) && bits >= 2048 && bits <= 8192
	case *ecdsa.PublicKey:
		return alg == jose.ES256 && key.Curve == elliptic.P256()
	case ed25519.PublicKey:
		return alg == jose.EdDSA || alg == ed25519Name
	}
	return false
}

// parseKeySet parses a JWKS (RFC 7517, section 5). It omits keys that have no certificate and
// cannot verify any supported signature. A private or symmetric key is an error, because clients
// must not share it.
func parseKeySet(raw []byte) (set []jose.JSONWebKey, err error) {
	tooLarge := fmt.Errorf("a key set has at most %d keys in %d KiB", maxKeys, maxKeySet>>10)
	if len(raw) > maxKeySet {
		return nil, tooLarge
	}

	var doc struct {
		Keys []json.RawMessage `json:"keys"`
	}
	const wrongFormat = `it is not a JWKS: {"keys": [...]}, see RFC 7517`
	err = json.Unmarshal(raw, &doc)
	if len(doc.Keys) > maxKeys { // report this even if an element is invalid
		return nil, tooLarge
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", wrongFormat, err)
	}
	if doc.Keys == nil {
		return nil, errors.New(wrongFormat)
	}

	for _, encoded := range doc.Keys {
		var k jose.JSONWebKey
		if k.UnmarshalJSON(encoded) != nil {
			continue // unknown kind of key (RFC 7517, section 5)
		}
		if !k.IsPublic() {
			return nil, fmt.Errorf("the key %q is private or symmetric; only public keys are allowed", k.KeyID)
		}
		if isUsable(k) || isCertified(k) {
			set = append(set, k)
		}
	}
	return set, nil
}

// checkFetched reports a URL if a document cannot be fetched from it securely. Over plain HTTP, anyone
// on the network path could change the response.
func checkFetched(found *problems, param, uri string) {
	u, err := url.Parse(uri)
	isValid := err == nil && len(uri) <= maxURI && u.Host != ""
	isSecure := isValid && (u.Scheme == "https" || u.Scheme == "http" && isLocal(u.Hostname()))
	if !isSecure {
		found.add(param, "%q must be https; http is only for localhost, 127.0.0.1 and [::1]", uri)
	}
}

// hasKeys reports whether public keys are registered for the client, by value or by URL.
func (c Client) hasKeys() bool { return len(c.JWKS) > 0 || c.JWKSURI != "" }

// checkObjects reports invalid settings for signed requests and responses.
func (c *Client) checkObjects(found *problems) {
	if c.RequestObjectAlg != "" {
		oneOf(found, "request_object_signing_alg", c.RequestObjectAlg, c.signingAlgorithms()...)
	}
	if c.ResponseAlg != "" {
		oneOf(found, "authorization_signed_response_alg", c.ResponseAlg, c.tokenAlgorithms()...)
	}
	if len(c.RequestURIs) > maxRequestURIs {
		found.add("request_uri", "a client may have at most %d", maxRequestURIs)
	}
	if len(c.RequestURIs) > 0 && !c.hasKeys() {
		found.add("request_uri", "request objects are signed: the client needs its public keys, jwks or jwks_uri")
	}

	for _, uri := range c.RequestURIs {
		checkFetched(found, "request_uri", uri)
	}
}

// withoutFragment returns uri without its fragment, which is not sent. The fragment of a
// request_uri is a hash of the request object. A changed object therefore has a different URI
// (OpenID Connect Core, section 6.2).
func withoutFragment(uri string) string {
	uri, _, _ = strings.Cut(uri, "#")
	return uri
}

// maxRequestURIs is the maximum number of request_uris of a client.
const maxRequestURIs = 32

// checkKeys reports invalid settings for the client's keys.
func (c *Client) checkKeys(found *problems) {
	if c.JWKSURI != "" {
		checkFetched(found, "jwks_uri", c.JWKSURI)
	}

	byValue, byURL := len(c.JWKS) > 0, c.JWKSURI != ""
	authenticates := c.AuthMethod == AuthPrivateKeyJWT || c.AuthMethod == AuthSelfSignedTLS
	switch {
	case c.hasKeys() && c.Type == Service && !authenticates:
		found.add("jwks", "only a client with the auth method private_key_jwt or self_signed_tls_client_auth, "+
			"or one that people sign in to, may have keys")
	case byValue && byURL, !c.hasKeys() && authenticates:
		found.add("jwks", "a client with %s needs its public keys: either by value (jwks) or by address (jwks_uri)",
			c.AuthMethod)
	case !c.hasKeys() && c.RequireObject:
		found.add("jwks", "a client that signs its requests needs its public keys, jwks or jwks_uri")
	case byValue:
		c.checkKeySet(found)
	}
}

// checkKeySet reports a stored key set that is invalid or has no key that the client needs.
func (c *Client) checkKeySet(found *problems) {
	set, err := parseKeySet(c.JWKS)
	if err != nil {
		found.add("jwks", "%v", err)
		return
	}

	if c.AuthMethod == AuthSelfSignedTLS {
		if !slices.ContainsFunc(set, isCertified) {
			found.add("jwks", "a client with self_signed_tls_client_auth needs a key with its certificate (x5c)")
		}
		return
	}
	if !slices.ContainsFunc(set, isUsable) {
		found.add("jwks", "it has no usable key: one for %v is needed (RSA of 2048 to 8192 bits, P-256 or Ed25519)",
			assertionAlgorithms)
	}
}

// checkAddresses returns an error for each URL in a client's settings from which selvage may not
// fetch documents.
func (cs *Clients) checkAddresses(c Client) (err error) {
	if c.JWKSURI != "" {
		err = cs.CheckURL("jwks_uri", c.JWKSURI)
	}
	if c.SectorURI != "" {
		err = errors.Join(err, cs.CheckURL(sectorParam, c.SectorURI))
	}
	for _, uri := range c.RequestURIs {
		err = errors.Join(err, cs.CheckURL("request_uri", withoutFragment(uri)))
	}
	if c.LogoURI != "" {
		err = errors.Join(err, cs.CheckURL("logo_uri", c.LogoURI))
	}
	return err
}
