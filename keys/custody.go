package keys

import (
	"context"
	"crypto"
	"crypto/x509"
	"fmt"
	"time"
)

// patience is how long a custody may take to make or open a key.
const patience = 3 * time.Second

// A Custody makes private signing keys and lets them sign. [PKCS8] holds them in
// memory; another may leave them in a key management service or a hardware
// module, which signs on request. Such a one must
//
//   - give a handle by which the key is found again, by any node and after any
//     restart: the name of the key there, and best its public part. It is sealed
//     by the master key and kept in the [Store], whether it is secret or not;
//   - open the handles of the custody before it, as a ring turns in its own time:
//     by leaving to PKCS8 what it did not make;
//   - give a crypto.Signer for RFC 7518's algorithm of the use. Its Public must be
//     at hand, as it is asked for each token that is verified. Its Sign is called
//     at once from many goroutines, with a digest and its hash (a *rsa.PSSOptions
//     for PS256 and its like; the message and crypto.Hash(0) for EdDSA), gives
//     what crypto/rsa, crypto/ecdsa (ASN.1) or crypto/ed25519 would, and bounds
//     the time it takes by itself.
//
// Nobody tells it that a key is not needed any more. That is so once the key is
// revoked or gone from the ring, and of one that was made and never kept, because
// another node was faster.
type Custody interface {
	// Make makes a key for one of the [Algorithms] and gives its handle; it is called
	// at once for several. Its ctx, and
	// that of Open, ends after three seconds: a ring does nothing else meanwhile.
	Make(ctx context.Context, use Use) (handle []byte, err error)
	// Open returns the key of a handle; it, too, is called at once for several. A ring
	// opens each key once, and tries again every second if it cannot.
	Open(ctx context.Context, use Use, handle []byte) (crypto.Signer, error)
}

// PKCS8 is the custody whose handles are the private keys themselves, in PKCS #8
// (RFC 5958).
type PKCS8 struct{}

var _ Custody = PKCS8{}

// Make makes a private key.
func (PKCS8) Make(_ context.Context, use Use) ([]byte, error) {
	key, err := generate(use)
	if err != nil {
		return nil, err
	}
	handle, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("making %s key: %w", use, err)
	}
	return handle, nil
}

// Open reads a private key.
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
