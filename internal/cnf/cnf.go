// Package cnf represents the binding of a token: to the key of a client's DPoP proofs (RFC 9449),
// or to the certificate that a client uses for TLS (RFC 8705).
//
// A binding is a string, which tokens and grants contain. It is the thumbprint of a key, or a
// prefix and the thumbprint of a certificate. For a token that is not bound, it is "".
package cnf

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

const prefix = "x5t#S256:"

// OfCertificate returns the binding to a certificate in DER.
func OfCertificate(der []byte) string {
	sum := sha256.Sum256(der)
	return prefix + base64.RawURLEncoding.EncodeToString(sum[:])
}

// IsCertificate reports whether a binding is to a certificate.
func IsCertificate(binding string) bool { return strings.HasPrefix(binding, prefix) }

// IsKey reports whether a binding is to a key.
func IsKey(binding string) bool { return binding != "" && !IsCertificate(binding) }

// A Claim is the claim cnf of a token (RFC 7800, section 3).
type Claim struct {
	JKT string `json:"jkt,omitempty"`      // thumbprint of a key (RFC 9449, section 6.1)
	X5T string `json:"x5t#S256,omitempty"` // thumbprint of a certificate (RFC 8705, section 3.1)
}

// ClaimOf returns the claim for a binding, or nil if the binding is "".
func ClaimOf(binding string) *Claim {
	if binding == "" {
		return nil
	}
	if thumbprint, ok := strings.CutPrefix(binding, prefix); ok {
		return &Claim{X5T: thumbprint}
	}
	return &Claim{JKT: binding}
}

// Binding returns the binding that a claim describes. c may be nil.
func (c *Claim) Binding() string {
	switch {
	case c == nil:
		return ""
	case c.X5T != "":
		return prefix + c.X5T
	}
	return c.JKT
}
