package keys

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
)

// Derive returns a secret for the given purpose. The secret is the same on every node and never
// rotates: it changes only with the master key.
func (r *Ring) Derive(purpose string) (secret [sha256.Size]byte) {
	return derive(r.c.Master, purpose)
}

func derive(master []byte, purpose string) (secret [sha256.Size]byte) {
	h := hmac.New(sha256.New, master)
	h.Write([]byte("selvage " + purpose))
	h.Sum(secret[:0])
	return secret
}

// SealSecret seals a secret that nodes share through the store and that is not a ring key, such as
// the key of a certificate. It uses a key derived from the master key. The result can be opened
// only under the same name, so that one secret cannot replace another.
func (r *Ring) SealSecret(name string, secret []byte) (string, error) {
	return r.shared.seal(secret, name)
}

// OpenSecret opens a secret that SealSecret sealed under the same name.
func (r *Ring) OpenSecret(name, sealed string) ([]byte, error) {
	secret, err := r.shared.open(sealed, name)
	if err != nil {
		return nil, fmt.Errorf("decrypting %s: %w", name, err)
	}
	return secret, nil
}
