package keys

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	_ "crypto/sha256" // hash functions of the algorithms
	_ "crypto/sha512"
	"encoding/base64"
	"fmt"
	"slices"

	"github.com/go-jose/go-jose/v4"
)

// A Use is the purpose of a key: signing with an algorithm from RFC 7518, or sealing.
type Use string

// The possible values of a Use.
const (
	RS256 Use = "RS256"
	ES256 Use = "ES256"
	PS256 Use = "PS256"
	EdDSA Use = "EdDSA" // with Ed25519 (RFC 8037, section 3.1)
	Seal  Use = "seal"
)

// algorithms lists the signing uses, each with its hash and how to generate keys. Signing,
// verification, the JWKS and the metadata all use this list.
//
// RS256 and PS256 have separate keys, because a key is used with only one algorithm (RFC 7517,
// section 4.4).
var algorithms = []algorithm{
	{RS256, crypto.SHA256, generateRSA},
	{ES256, crypto.SHA256, generateP256},
	{PS256, crypto.SHA256, generateRSA},
	{EdDSA, crypto.SHA512, generateEd25519},
}

type algorithm struct {
	use      Use
	hash     crypto.Hash
	generate func() (crypto.Signer, error)
}

func generateRSA() (crypto.Signer, error) { return rsa.GenerateKey(rand.Reader, 2048) }

func generateP256() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

func generateEd25519() (crypto.Signer, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	return key, err
}

// algorithmOf returns the algorithm of a use for signing.
func algorithmOf(use Use) (algorithm, bool) {
	i := slices.IndexFunc(algorithms, func(a algorithm) bool { return a.use == use })
	if i < 0 {
		return algorithm{}, false
	}
	return algorithms[i], true
}

// Algorithms returns the uses for signing.
func Algorithms() []Use {
	var uses []Use
	for _, a := range algorithms {
		uses = append(uses, a.use)
	}
	return uses
}

// Uses returns all uses.
func Uses() []Use { return append(Algorithms(), Seal) }

// signatures lists the algorithms in the type that go-jose uses.
var signatures = func() (all []jose.SignatureAlgorithm) {
	for _, a := range algorithms {
		all = append(all, jose.SignatureAlgorithm(a.use))
	}
	return all
}()

// generate returns a new private key for an algorithm.
func generate(use Use) (crypto.Signer, error) {
	a, ok := algorithmOf(use)
	if !ok {
		return nil, fmt.Errorf("creating key: unknown algorithm %q", use)
	}
	key, err := a.generate()
	if err != nil {
		return nil, fmt.Errorf("creating %s key: %w", use, err)
	}
	return key, nil
}

// HalfHash hashes token with the algorithm's hash function, and returns the left half in base64url,
// as required in ID tokens (OpenID Connect Core, section 3.1.3.6).
func (u Use) HalfHash(token string) string {
	a, ok := algorithmOf(u)
	if !ok {
		return ""
	}
	h := a.hash.New()
	h.Write([]byte(token))
	sum := h.Sum(nil)
	return base64.RawURLEncoding.EncodeToString(sum[:len(sum)/2])
}
