// Package ca is the local certificate authority. It provides HTTPS from the first start, for
// names that no public authority certifies.
//
// Its certificate is in ca.pem, which users install wherever it should be trusted. Its key is in
// ca-key.pem. The certificate is limited to local names, private addresses and the hosts it was
// made for, so a stolen key cannot impersonate any other host. The server's own certificates exist
// only in memory. They are issued at startup and renewed before they expire.
package ca

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// CertFile and KeyFile are the names of the authority's files in its directory.
const (
	CertFile = "ca.pem"     // the certificate, 0644
	KeyFile  = "ca-key.pem" // its key, 0600
)

// These are the lifetimes of certificates. The server's certificate is renewed in the last third of
// its lifetime.
const (
	lifetime     = 10 * 365 * 24 * time.Hour // of the authority's certificate
	leafLifetime = 90 * 24 * time.Hour       // of the server's certificate
	renewBefore  = 30 * 24 * time.Hour
	clockSkew    = time.Hour // certificates are dated back by this much, for clients whose clocks are behind
)

// Hosts are the names and addresses that every certificate contains. They are listed one by one
// because clients reject the wildcard *.localhost.
var Hosts = []string{"localhost", "puc.localhost", "fabric.localhost", "id.localhost", "127.0.0.1", "::1"}

// Config sets where an authority is stored and which hosts it certifies.
type Config struct {
	Dir   string           // directory of its files
	Hosts []string         // names and addresses in addition to [Hosts]
	Now   func() time.Time // nil means time.Now
}

// An Authority issues the certificates of one server.
type Authority struct {
	now   func() time.Time
	hosts []string
	cert  *x509.Certificate
	key   *ecdsa.PrivateKey

	mu   sync.Mutex
	leaf *tls.Certificate
}

// Open reads the authority in a directory, or creates one, and issues the server's first
// certificate.
func Open(c Config) (*Authority, error) {
	if c.Now == nil {
		c.Now = time.Now
	}

	a := &Authority{now: c.Now, hosts: slices.Clone(Hosts)}
	for _, host := range c.Hosts {
		if host != "" && !slices.Contains(a.hosts, host) {
			a.hosts = append(a.hosts, host)
		}
	}

	var err error
	a.key, err = readKey(filepath.Join(c.Dir, KeyFile))
	if err != nil {
		return nil, err
	}
	a.cert, err = a.readCert(c.Dir)
	if err != nil {
		return nil, err
	}
	if err := a.check(filepath.Join(c.Dir, CertFile)); err != nil {
		return nil, err
	}
	if _, err := a.certificate(); err != nil {
		return nil, err
	}
	return a, nil
}

// check returns an error if the authority cannot be used.
func (a *Authority) check(file string) error {
	public, ok := a.cert.PublicKey.(*ecdsa.PublicKey)
	if !ok || !public.Equal(&a.key.PublicKey) {
		return fmt.Errorf("%s and %s do not match: restore the file that was replaced, "+
			"or delete both to create new ones", file, KeyFile)
	}
	if a.now().After(a.cert.NotAfter) {
		return fmt.Errorf("%s expired on %s: delete it to create a new one, and install that",
			file, a.cert.NotAfter.Format(time.DateOnly))
	}
	for _, host := range a.hosts {
		if !permits(a.cert, host) {
			return fmt.Errorf("%s is not valid for %s: delete it to create a new one, and install that", file, host)
		}
	}
	return nil
}

// Reload issues a new certificate for the server.
func (a *Authority) Reload() error {
	leaf, err := a.issue()
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.leaf = leaf
	return nil
}

// TLS returns the configuration of a listener: TLS 1.2 or newer, with a certificate that is renewed
// before it expires.
func (a *Authority) TLS() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return a.certificate() },
	}
}

// Ends returns when the server's certificate or the authority's own expires, whichever is earlier. The
// authority's certificate is not renewed.
func (a *Authority) Ends() time.Time {
	leaf, err := a.certificate()
	if err != nil {
		return time.Time{}
	}
	if a.cert.NotAfter.Before(leaf.Leaf.NotAfter) {
		return a.cert.NotAfter
	}
	return leaf.Leaf.NotAfter
}

// certificate returns the server's certificate. It first renews a certificate that is in the last third
// of its lifetime, or that is not valid yet because the clock was set back.
func (a *Authority) certificate() (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.leaf != nil && inFirstThirds(a.leaf.Leaf, a.now()) {
		return a.leaf, nil
	}
	leaf, err := a.issue()
	if err != nil {
		return nil, err
	}
	a.leaf = leaf
	return leaf, nil
}

// inFirstThirds reports whether a certificate of the server is in the first two thirds of its lifetime.
func inFirstThirds(leaf *x509.Certificate, now time.Time) bool {
	return !now.Before(leaf.NotBefore) && now.Before(leaf.NotAfter.Add(-renewBefore))
}

// Certificate returns the authority's own certificate.
func (a *Authority) Certificate() *x509.Certificate { return a.cert }

// PEM returns the authority's own certificate in PEM.
func (a *Authority) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// Names returns the names and addresses of the server's certificate.
func (a *Authority) Names() []string { return slices.Clone(a.hosts) }

// permits reports whether the name constraints of a certificate allow a name or address.
func permits(cert *x509.Certificate, host string) bool {
	if ip := net.ParseIP(host); ip != nil {
		return slices.ContainsFunc(cert.PermittedIPRanges, func(n *net.IPNet) bool { return n.Contains(ip) })
	}
	return slices.ContainsFunc(cert.PermittedDNSDomains, func(d string) bool { return within(host, d) })
}
