package keys

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
)

// Derive returns a secret for the given purpose. The secret is the same on every node, and changes
// only with the master key.
func (r *Ring) Derive(purpose string) [sha256.Size]byte {
	return derive(r.master(), purpose)
}

// DeriveFirst is like Derive, but the secret stays the same when the master key is replaced. It is
// for names that clients have stored, such as pairwise subjects. Someone who has stolen the first
// master key knows the secret.
func (r *Ring) DeriveFirst(purpose string) [sha256.Size]byte {
	all := r.masters()
	return derive(all[len(all)-1].key, purpose)
}

// DeriveTrusted returns the secrets for the given purpose, newest first, from all master keys that
// only this installation knows. They are for checking values from before a rotation.
func (r *Ring) DeriveTrusted(purpose string) [][sha256.Size]byte {
	return r.deriveAll(purpose, func(x root) bool { return !x.leaked })
}

// DeriveAll is like DeriveTrusted, but includes master keys that others may know.
func (r *Ring) DeriveAll(purpose string) [][sha256.Size]byte {
	return r.deriveAll(purpose, func(root) bool { return true })
}

func (r *Ring) deriveAll(purpose string, which func(root) bool) (all [][sha256.Size]byte) {
	for _, x := range r.masters() {
		if which(x) {
			all = append(all, derive(x.key, purpose))
		}
	}
	return all
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
	return r.newest().shared.seal(secret, name)
}

// OpenSecret opens a secret that SealSecret sealed under the same name, perhaps with an earlier master
// key.
func (r *Ring) OpenSecret(name, sealed string) ([]byte, error) {
	secret, err := openAny(r.masters(), func(x root) *vault { return x.shared }, sealed, name)
	if err != nil {
		return nil, fmt.Errorf("decrypting %s: %w", name, err)
	}
	return secret, nil
}

// Reseal returns a secret sealed with the newest master key. fresh is true if it was already sealed
// with this key.
func (r *Ring) Reseal(name, sealed string) (again string, fresh bool, err error) {
	if _, err := r.newest().shared.open(sealed, name); err == nil {
		return sealed, true, nil
	}
	secret, err := r.OpenSecret(name, sealed)
	if err != nil {
		return "", false, err
	}
	again, err = r.SealSecret(name, secret)
	return again, false, err
}
