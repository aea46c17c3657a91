package idp

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	"github.com/go-jose/go-jose/v4"
)

// assertionAlgorithms are those that a client may sign by: none that is symmetric,
// for which a public key would be a secret.
var assertionAlgorithms = []jose.SignatureAlgorithm{jose.RS256, jose.PS256, jose.ES256, jose.EdDSA, ed25519Name}

// ed25519Name is the name of EdDSA with the curve of its keys (RFC 9864, section 2.2).
// The library knows EdDSA alone.
const ed25519Name jose.SignatureAlgorithm = "Ed25519"

// An edwards is a key that verifies what is signed under the name Ed25519.
type edwards ed25519.PublicKey

var _ jose.OpaqueVerifier = edwards(nil)

// VerifyPayload reports a signature that is not by the key.
func (k edwards) VerifyPayload(payload, signature []byte, alg jose.SignatureAlgorithm) error {
	if alg != ed25519Name || len(k) != ed25519.PublicKeySize ||
		!ed25519.Verify(ed25519.PublicKey(k), payload, signature) {
		return jose.ErrCryptoFailure
	}
	return nil
}

// verifier returns what the library verifies by, for a key that fits an algorithm.
func verifier(k jose.JSONWebKey, alg jose.SignatureAlgorithm) any {
	if key, ok := k.Key.(ed25519.PublicKey); ok && alg == ed25519Name {
		return edwards(key)
	}
	return k.Key
}

// AssertionAlgorithms lists what a client may sign its assertions by.
func AssertionAlgorithms() (names []string) {
	for _, alg := range assertionAlgorithms {
		names = append(names, string(alg))
	}
	return names
}

// The bounds of a client's key set.
const (
	maxKeySet = 64 << 10
	maxKeys   = 32
)

// keysOf returns the keys of a client that an assertion with this header may be
// signed by.
func (as *Assertions) keysOf(ctx context.Context, c Client, kid string, alg jose.SignatureAlgorithm) ([]jose.JSONWebKey, error) {
	if c.JWKSURI != "" {
		return as.remoteKeys(ctx, c.JWKSURI, kid, alg)
	}
	set, err := parseKeySet(c.JWKS)
	if err != nil {
		return nil, err
	}
	return fitting(set, kid, alg), nil
}

// fitting returns the keys of a set for a header. Where it names no key, any may be
// meant.
func fitting(set []jose.JSONWebKey, kid string, alg jose.SignatureAlgorithm) (some []jose.JSONWebKey) {
	for _, k := range set {
		if (kid == "" || k.KeyID == kid) && (k.Algorithm == "" || isNamed(k, alg)) && signs(k, alg) {
			some = append(some, k)
		}
	}
	return some
}

// isNamed reports whether a key says that it is of an algorithm, by either name that
// Ed25519 has.
func isNamed(k jose.JSONWebKey, alg jose.SignatureAlgorithm) bool {
	if alg == ed25519Name && k.Algorithm == string(jose.EdDSA) || alg == jose.EdDSA &&
		k.Algorithm == string(ed25519Name) {
		return true
	}
	return k.Algorithm == string(alg)
}

// signs reports whether a key is one of an algorithm, and as strong as RFC 7518,
// sections 3.3 and 3.4 want it.
func signs(k jose.JSONWebKey, alg jose.SignatureAlgorithm) bool {
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

// parseKeySet reads a JWKS (RFC 7517, section 5) and leaves out the keys that
// nothing here can be verified by. One with a secret part is refused: it is not
// for us to have.
func parseKeySet(raw []byte) (set []jose.JSONWebKey, err error) {
	var doc struct {
		Keys []json.RawMessage `json:"keys"`
	}
	switch err := json.Unmarshal(raw, &doc); {
	case len(raw) > maxKeySet || len(doc.Keys) > maxKeys:
		return nil, fmt.Errorf("a key set has at most %d keys in %d KiB", maxKeys, maxKeySet>>10)
	case err != nil || doc.Keys == nil:
		return nil, fmt.Errorf(`it is no JWKS: {"keys": [...]}, see RFC 7517`)
	}
	for _, text := range doc.Keys {
		var k jose.JSONWebKey
		if k.UnmarshalJSON(text) != nil {
			continue // of another type (RFC 7517, section 5)
		}
		if !k.IsPublic() {
			return nil, fmt.Errorf("the key %q is a private or symmetric one; only public keys belong here", k.KeyID)
		}
		for _, alg := range assertionAlgorithms {
			if signs(k, alg) {
				set = append(set, k)
				break
			}
		}
	}
	return set, nil
}

// checkFetched refuses an address that a document is not fetched from: what anybody
// on the way could have changed.
func checkFetched(bad func(param, format string, args ...any), param, uri string) {
	u, err := url.Parse(uri)
	if err != nil || len(uri) > maxURI || u.Host == "" || u.Scheme != "https" &&
		(u.Scheme != "http" || !isLocal(u.Hostname())) {
		bad(param, "%q must be https; http is only for localhost, 127.0.0.1 and [::1]", uri)
	}
}

// checkKeys applies what is to be said about a client's keys.
func (c *Client) checkKeys(bad func(param, format string, args ...any)) {
	if c.JWKSURI != "" {
		checkFetched(bad, "jwks_uri", c.JWKSURI)
	}
	has := len(c.JWKS) > 0
	switch {
	case c.AuthMethod != AuthPrivateKeyJWT && (has || c.JWKSURI != ""):
		bad("jwks", "only a client with the auth method private_key_jwt has keys")
	case c.AuthMethod != AuthPrivateKeyJWT:
	case has == (c.JWKSURI != ""):
		bad("jwks", "a client with private_key_jwt needs its public keys: by value (jwks) or by their address (jwks_uri), one of them")
	case has:
		set, err := parseKeySet(c.JWKS)
		if err != nil {
			bad("jwks", "%v", err)
		} else if len(set) == 0 {
			bad("jwks", "no key in it can be used: there must be one for %v (RSA of 2048 to 8192 bits, P-256 or Ed25519)", assertionAlgorithms)
		}
	}
}

// checkAddresses reports addresses that nothing can be fetched from.
func (cs *Clients) checkAddresses(c Client) (err error) {
	if c.JWKSURI != "" {
		err = cs.CheckURL("jwks_uri", c.JWKSURI)
	}
	if c.SectorURI != "" {
		err = errors.Join(err, cs.CheckURL(sectorParam, c.SectorURI))
	}
	return err
}
