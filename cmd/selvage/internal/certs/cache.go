package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"

	"golang.org/x/crypto/acme/autocert"

	"github.com/selvage/selvage/internal/problem"
)

// A cache keeps the data of autocert in the store. Each value is encrypted and bound to its name.
type cache struct {
	rows Store
	seal Sealer
	log  *slog.Logger
}

var _ autocert.Cache = cache{}

// errCache is the error that clients see in a handshake or challenge. The cause is logged.
var errCache = errors.New("certificates cannot be read or stored now")

// maxName is the maximum length of a name. It is limited because the names of challenges come from
// requests.
const maxName = 400

// Get implements autocert.Cache.
func (c cache) Get(ctx context.Context, name string) ([]byte, error) {
	if len(name) > maxName {
		return nil, autocert.ErrCacheMiss
	}

	sealed, err := c.rows.FindCertificate(ctx, name)
	// Malformed means that the name is not valid text, so the store cannot contain it.
	if errors.Is(err, problem.NotFound) || errors.Is(err, problem.Malformed) {
		return nil, autocert.ErrCacheMiss
	}
	if err != nil {
		return nil, c.tell("reading", name, err)
	}

	secret, err := c.seal.OpenSecret(SecretName(name), sealed)
	if err != nil {
		return nil, c.tell("opening", name, err)
	}
	return secret, nil
}

// Put implements autocert.Cache.
func (c cache) Put(ctx context.Context, name string, secret []byte) error {
	sealed, err := c.seal.SealSecret(SecretName(name), secret)
	if err != nil {
		return c.tell("keeping", name, err)
	}
	if err := c.rows.PutCertificate(ctx, name, sealed); err != nil {
		return c.tell("keeping", name, err)
	}
	return nil
}

// Delete implements autocert.Cache.
func (c cache) Delete(ctx context.Context, name string) error {
	if err := c.rows.DeleteCertificate(ctx, name); err != nil {
		return c.tell("deleting", name, err)
	}
	return nil
}

// tell logs a failure, and returns the error that clients see.
func (c cache) tell(did, name string, err error) error {
	c.log.Error(did+" ACME data", "name", name, "error", err)
	return errCache
}

// Stored returns the certificate in the store that ACME obtained for a host. It returns
// problem.NotFound if there is none.
func Stored(ctx context.Context, rows Store, seal Sealer, host string) (*x509.Certificate, error) {
	sealed, err := rows.FindCertificate(ctx, host)
	if err != nil {
		return nil, err
	}
	text, err := seal.OpenSecret(SecretName(host), sealed)
	if err != nil {
		return nil, fmt.Errorf("opening certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(text, text)
	if err != nil {
		return nil, fmt.Errorf("reading certificate: %w", err)
	}
	return pair.Leaf, nil
}

// SecretName returns the name under which a value of the cache is sealed.
func SecretName(name string) string { return "certificate " + name }
