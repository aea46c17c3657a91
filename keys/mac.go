package keys

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
)

// Code returns an authentication code for message: an HMAC-SHA256, prefixed with the kid of the
// ring's current sealing key. The HMAC key is derived from this sealing key and the purpose. Every
// node can verify the code until the sealing key is revoked or deleted. The sealing key is deleted
// no earlier than [Kept] after it was retired.
func (r *Ring) Code(purpose, message string) (string, error) {
	now := r.latest.Load()
	kid := now.makers[Seal].Kid
	mac, err := now.mac(kid, purpose, message)
	return kid + "." + base64.RawURLEncoding.EncodeToString(mac), err
}

// VerifyCode reports whether code is a valid code for message and purpose. Its timing does not
// reveal how much of the code is correct.
func (r *Ring) VerifyCode(purpose, message, code string) bool {
	kid, text, _ := strings.Cut(code, ".")
	given, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(given) != sha256.Size {
		return false
	}
	now := r.latest.Load()

	if now.roots[kid] == nil {
		r.lookAgain()
		now = r.latest.Load()
	}
	mac, err := now.mac(kid, purpose, message)
	return err == nil && hmac.Equal(mac, given)
}

// mac returns the HMAC of a message, with a key derived from the sealing key that has the given
// kid.
func (s *snapshot) mac(kid, purpose, message string) ([]byte, error) {
	root := s.roots[kid]
	if root == nil {
		return nil, fmt.Errorf("creating code: unknown key %s", kid)
	}
	key, err := hkdf.Key(sha256.New, root, nil, "selvage code "+purpose, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("deriving key: %w", err)
	}

	h := hmac.New(sha256.New, key)
	h.Write([]byte(message))
	return h.Sum(nil), nil
}
