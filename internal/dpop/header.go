package dpop

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"math/big"
	"strings"
	"sync"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/json"
	"github.com/go-jose/go-jose/v4/jwt"
)

const (
	maxHeader  = 1 << 10 // longer headers are not remembered
	maxHeaders = 2048    // when this many are remembered, the next one replaces them all
)

// A header is the parsed header of a proof.
type header struct {
	alg        jose.SignatureAlgorithm
	key        any
	thumbprint string
}

// headers remembers the headers of valid proofs by their encoded form. A client signs all its
// proofs with the same key, and usually sends the same header each time. Except for verifying the
// signature, parsing the header is the slowest step of checking a proof.
type headers struct {
	mu sync.RWMutex
	m  map[string]header
}

func (hs *headers) find(encoded string) (header, bool) {
	hs.mu.RLock()
	defer hs.mu.RUnlock()
	h, ok := hs.m[encoded]
	return h, ok
}

// keep remembers the header of a proof whose signature is valid.
func (hs *headers) keep(encoded string, h header) {
	if len(encoded) > maxHeader {
		return
	}
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if hs.m == nil || len(hs.m) >= maxHeaders {
		hs.m = make(map[string]header)
	}
	hs.m[strings.Clone(encoded)] = h
}

// parse verifies the signature of a proof, and returns its header and its claims. The error
// describes what is wrong with the proof.
func parse(proof string, accepted []jose.SignatureAlgorithm) (h header, c claims, err error) {
	token, err := jwt.ParseSigned(proof, accepted)
	if err != nil || len(token.Headers) != 1 {
		return h, c, invalid("it is not a compact JWT signed by one of %v", accepted)
	}

	head := token.Headers[0]
	if head.ExtraHeaders[jose.HeaderType] != "dpop+jwt" {
		return h, c, invalid("its typ must be dpop+jwt")
	}
	key := head.JSONWebKey
	if key == nil || !key.IsPublic() || !isStrong(key.Key) {
		return h, c, invalid("its jwk must be a public key: P-256, Ed25519, or RSA with 2048 to 4096 bits")
	}
	if token.Claims(key.Key, &c) != nil {
		return h, c, errInvalid
	}

	sum, err := key.Thumbprint(crypto.SHA256)
	if err != nil {
		return h, c, fmt.Errorf("computing thumbprint: %w", err)
	}
	alg := jose.SignatureAlgorithm(head.Algorithm)
	return header{alg: alg, key: key.Key, thumbprint: base64.RawURLEncoding.EncodeToString(sum)}, c, nil
}

// open verifies the signature of a proof that has this header, and returns its claims.
func (h header) open(proof string) (c claims, err error) {
	parts := strings.Split(proof, ".")
	if len(parts) != 3 {
		return c, errInvalid
	}

	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return c, errInvalid
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || !h.verify(parts[0]+"."+parts[1], signature) || json.Unmarshal(payload, &c) != nil {
		return c, errInvalid
	}
	return c, nil
}

// verify reports whether a signature of the text signed is valid (RFC 7518, sections 3.3 to 3.5;
// RFC 8037, section 3.1).
func (h header) verify(signed string, signature []byte) bool {
	sum := sha256.Sum256([]byte(signed))
	switch key := h.key.(type) {
	case *ecdsa.PublicKey:
		const half = 32 // P-256 is the only accepted curve
		return len(signature) == 2*half && ecdsa.Verify(key, sum[:],
			new(big.Int).SetBytes(signature[:half]), new(big.Int).SetBytes(signature[half:]))
	case ed25519.PublicKey:
		return ed25519.Verify(key, []byte(signed), signature)
	case *rsa.PublicKey:
		if h.alg == jose.RS256 {
			return rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], signature) == nil
		}
		return rsa.VerifyPSS(key, crypto.SHA256, sum[:], signature, nil) == nil
	}
	return false
}

// isStrong reports whether proofs may be signed with a key. It refuses RSA keys that are weak or
// expensive to use, and all elliptic curves except P-256 and Ed25519.
func isStrong(key any) bool {
	switch k := key.(type) {
	case *rsa.PublicKey:
		bits := k.N.BitLen()
		return bits >= 2048 && bits <= 4096
	case *ecdsa.PublicKey:
		return k.Curve == elliptic.P256()
	case ed25519.PublicKey:
		return true
	}
	return false
}
