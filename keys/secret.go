package keys

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
)

// Derive returns a secret for a purpose that is the same at every node and never
// rotated: it changes with the master key alone.
func (r *Ring) Derive(purpose string) (secret [sha256.Size]byte) {
	h := hmac.New(sha256.New, r.c.Master)
	h.Write([]byte("selvage " + purpose))
	h.Sum(secret[:0])
	return secret
}

// SealSecret seals what nodes share in the store and is no key of the ring, such
// as the key of a certificate, under a key derived from the master key. It opens
// under the same name alone, so that one cannot be put in another's place.
func (r *Ring) SealSecret(name string, secret []byte) (string, error) {
	return r.shared.seal(secret, name)
}

// OpenSecret opens what SealSecret sealed under that name.
func (r *Ring) OpenSecret(name, sealed string) ([]byte, error) {
	secret, err := r.shared.open(sealed, name)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", name, err)
	}
	return secret, nil
}
