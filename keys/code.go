package keys

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
)

// Code returns the code of a message: HMAC-SHA256 under a key that is derived for
// the purpose from the ring's current sealing key, behind the kid of that. Every
// node verifies it for as long as the key is kept, which is [Kept] at least, and
// not once it is revoked.
func (r *Ring) Code(purpose, message string) (string, error) {
	now := r.latest.Load()
	kid := now.makers[Seal].Kid
	mac, err := now.mac(kid, purpose, message)
	return kid + "." + base64.RawURLEncoding.EncodeToString(mac), err
}

// VerifyCode tells whether a code is that of a message for a purpose. How long it
// takes says nothing of how much of the code is right.
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

// mac returns the code of a message under a sealing key.
func (s *snapshot) mac(kid, purpose, message string) ([]byte, error) {
	root := s.roots[kid]
	if root == nil {
		return nil, fmt.Errorf("making code: no key %s", kid)
	}
	key, err := hkdf.Key(sha256.New, root, nil, "selvage code "+purpose, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("deriving key: %w", err)
	}
	h := hmac.New(sha256.New, key)
	h.Write([]byte(message))
	return h.Sum(nil), nil
}
