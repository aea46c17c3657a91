package redis

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/session"
	"github.com/selvage/selvage/test/servers"
)

// writeCertificate writes a self-signed certificate for this machine and its key, and returns the
// names of the two files.
func writeCertificate(t *testing.T) (cert, key string) {
	t.Helper()
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	c := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "redis"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}

	signed, err := x509.CreateCertificate(rand.Reader, c, c, &signer.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}

	secret, err := x509.MarshalPKCS8PrivateKey(signer)
	if err != nil {
		t.Fatal(err)
	}

	write := func(name, kind string, der []byte) string {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	return write("cert.pem", "CERTIFICATE", signed), write("key.pem", "PRIVATE KEY", secret)
}

func TestTLS(t *testing.T) {
	cert, key := writeCertificate(t)
	other, _ := writeCertificate(t)
	port := servers.FreePort(t)
	server := servers.OwnRedis(t,
		"--tls-port", fmt.Sprint(port),
		"--tls-cert-file", cert,
		"--tls-key-file", key,
		"--tls-ca-cert-file", cert)
	url := fmt.Sprintf("rediss://127.0.0.1:%d?ca=", port)

	s := open(t, Config{URL: url + cert + "&cert=" + cert + "&key=" + key, Patience: patient})
	k := session.Key{Kind: "code", ID: "1"}
	for range 2 {
		if err := s.Put(t.Context(), k, []byte("one"), time.Minute); err != nil {
			t.Errorf("Put = %v, want success", err)
		}
		// The store must not reuse the old connection after the restart.
		server.Stop(t)
		server.Start(t)
	}

	for _, untrusting := range []string{url + other, strings.TrimSuffix(url, "?ca=")} {
		_, err := Open(t.Context(), Config{URL: untrusting, Patience: patient})
		if err == nil || !strings.Contains(err.Error(), "not trusted") {
			t.Errorf("Open without the server's authority = %v, want an error about trust", err)
		}
	}
}
