package keys

import (
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
)

// SealSecret seals what nodes share in the store and is no key of the ring, such
// as the key of a certificate, under a key derived from the master key. It opens
// under the same name alone, so that one cannot be put in another's place.
func (r *Ring) SealSecret(name string, secret []byte) (string, error) {
	v, err := r.secrets()
	if err != nil {
		return "", err
	}
	return v.seal(secret, name)
}

// OpenSecret opens what SealSecret sealed under that name.
func (r *Ring) OpenSecret(name, sealed string) ([]byte, error) {
	v, err := r.secrets()
	if err != nil {
		return nil, err
	}
	secret, err := v.open(sealed, name)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", name, err)
	}
	return secret, nil
}

// secrets gives the vault of secrets, whose key is not that of ring keys.
func (r *Ring) secrets() (*vault, error) {
	key, err := hkdf.Key(sha256.New, r.c.Master, nil, "selvage secrets", 32)
	if err != nil {
		return nil, fmt.Errorf("deriving key: %w", err)
	}
	return newVault(key)
}
