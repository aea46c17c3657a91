package keys

import (
	"context"
	"crypto"
	"crypto/x509"
	"fmt"
	"time"
)

// custodyTimeout is how long a Custody may take to create or open a key.
const custodyTimeout = 3 * time.Second

// A Custody creates private signing keys and signs with them. [PKCS8] holds the keys in memory.
// Other implementations may keep the keys in a key management service or a hardware module, and let
// it sign. An implementation must
//
//   - return a handle with which any node can find the key, even after a restart: the key's name in the
//     service or module, and preferably its public part. Whether the handle is secret or not, it is
//     sealed with the master key and kept in the [Store];
//   - accept handles from the previous custody, by passing handles that are not its own to PKCS8,
//     since keys are replaced only when the ring rotates;
//   - return a crypto.Signer for the use's algorithm in RFC 7518.
//
// The signer's Public is called when a key is opened, and must return immediately. Its Sign is
// called concurrently from many goroutines and must limit its own duration. Sign gets a digest and
// its hash (a *rsa.PSSOptions for the PS algorithms). For EdDSA, it gets the message and
// crypto.Hash(0). The results of Sign have the same form as those of crypto/rsa, crypto/ecdsa
// (ASN.1) and crypto/ed25519.
//
// A Custody is not notified when a key is no longer needed. This is the case when the key is
// revoked or deleted from the ring, or was never stored because another node was faster.
type Custody interface {
	// Make creates a key for one of the [Algorithms] and returns its handle. It may be called
	// concurrently for several keys. The contexts of Make and Open end after three seconds, because
	// the ring does nothing else in the meantime.
	Make(ctx context.Context, use Use) (handle []byte, err error)
	// Open returns the key with the given handle. It may be called concurrently for several keys. A
	// ring opens each key once. If that fails, it tries again every second.
	Open(ctx context.Context, use Use, handle []byte) (crypto.Signer, error)
}

// PKCS8 is the Custody whose handles are the private keys themselves, in PKCS #8 (RFC 5958).
type PKCS8 struct{}

var _ Custody = PKCS8{}

// Make creates a private key and returns it in PKCS #8.
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
