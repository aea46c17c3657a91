package acme

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"strings"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// Shake makes a TLS handshake with selvage for a host and returns the verified certificate. It
// fails unless HTTP/2 is negotiated.
func Shake(s *harness.Server, host string, roots *x509.CertPool) (*x509.Certificate, error) {
	conn, err := tls.Dial("tcp", strings.TrimPrefix(s.HTTPS, "https://"),
		&tls.Config{ServerName: host, RootCAs: roots, NextProtos: []string{"h2"}})
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if got := conn.ConnectionState().NegotiatedProtocol; got != "h2" {
		return nil, fmt.Errorf("the protocol is %q, want h2", got)
	}
	return conn.ConnectionState().PeerCertificates[0], nil
}

// Await waits until selvage presents a certificate for the host that is not in others, and returns
// it.
func Await(
	t harness.T, s *harness.Server, host string, roots *x509.CertPool, others ...*x509.Certificate,
) *x509.Certificate {
	t.Helper()
	var got *x509.Certificate
	harness.Eventually(t, patience, "a new certificate for "+host, func() (err error) {
		if got, err = Shake(s, host, roots); err != nil {
			return err
		}

		for _, other := range others {
			if got.Equal(other) {
				return errors.New("the certificate is still an earlier one")
			}
		}
		return nil
	})
	return got
}

// certify creates the HTTPS certificate of pebble, writes it and its key to files, and returns a
// pool that contains it.
func certify(t harness.T, certFile, keyFile string) *x509.CertPool {
	t.Helper()
	fatal := func(err error) {
		if err != nil {
			t.Fatalf("certifying pebble: %v", err)
		}
	}

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	fatal(err)

	c := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}

	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	fatal(err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	fatal(err)

	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	fatal(os.WriteFile(certFile, text, 0o600))
	fatal(os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))

	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return pool
}
