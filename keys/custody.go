package keys

import (
	"context"
	"crypto"
	"crypto/x509"
	"fmt"
	"time"
)

// patience is how long a Custody may take to make or open a key.
const patience = 3 * time.Second

// A Custody makes private signing keys and lets them sign. [PKCS8] holds them in
// memory. Another implementation may leave them in a key management service or a
// hardware module, which signs on request. It must
//
//   - return a handle by which any node finds the key again after any restart: the
//     key's name there, and preferably its public part. The handle is sealed by the
//     master key and kept in the [Store], whether it is secret or not;
//   - open handles of the previous custody by passing those that it did not make to
//     PKCS8, because keys are only replaced as the ring rotates;
//   - return a crypto.Signer for the use's algorithm of RFC 7518.
//
// Public must return at once, because it is called for each token that is verified.
// Sign is called concurrently from many goroutines and must bound its own time. It
// gets a digest and its hash (a *rsa.PSSOptions for the PS algorithms), or the message
// and crypto.Hash(0) for EdDSA. It returns what crypto/rsa, crypto/ecdsa (ASN.1) or
// crypto/ed25519 would return.
//
// A Custody is not told when a key is no longer needed: once the key is revoked or
// deleted from the ring, or if it was never stored because another node was faster.
type Custody interface {
	// Make makes a key for one of the [Algorithms] and returns its handle. It is called
	// concurrently for several keys. The ctx of Make and Open ends after three seconds,
	// because the ring does nothing else meanwhile.
	Make(ctx context.Context, use Use) (handle []byte, err error)
	// Open returns the key of a handle. It is called concurrently for several keys. A
	// ring opens each key once, and retries every second if that fails.
	Open(ctx context.Context, use Use, handle []byte) (crypto.Signer, error)
}

// PKCS8 is the Custody whose handles are the private keys themselves, in PKCS #8
// (RFC 5958).
type PKCS8 struct{}

var _ Custody = PKCS8{}

// Make makes a private key and returns it in PKCS #8.
func (PKCS8) Make(_ context.Context, use Use) ([]byte, error) {
	key, err := generate(use)
	if err != nil {
		return nil, err
	}
	handle, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("creating %s key: %w", use, err)
	}
	return handle, nil
}

// Open parses a private key.
func (PKCS8) Open(_ context.Context, use Use, handle []byte) (crypto.Signer, error) {
	key, err := x509.ParsePKCS8PrivateKey(handle)
	if err != nil {
		return nil, fmt.Errorf("reading %s key: %w", use, err)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("reading %s key: a %T cannot sign", use, key)
	}
	return signer, nil
}
