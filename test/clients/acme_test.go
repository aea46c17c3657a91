package clients

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// certified starts a server whose certificates pebble gives, on known ports.
func certified(t *testing.T, p *pebble, httpPort, tlsPort int, hosts ...string) *harness.Server {
	t.Helper()
	return harness.StartConfig(t, harness.Config{
		Args: []string{"--listen", local(httpPort), "--listen-tls", local(tlsPort), "--public-url", "https://" + hosts[0]},
		Env: []string{
			"SELVAGE_TLS__ACME__HOSTS=" + strings.Join(hosts, ","), "SELVAGE_TLS__ACME__ACCEPT_TERMS=true", "SELVAGE_TLS__ACME__EMAIL=ops@selvage.test",
			"SELVAGE_TLS__ACME__DIRECTORY=" + p.directory, "SELVAGE_TLS__ACME__CA=" + p.ca,
		},
	})
}

// shake gives the certificate that a server shows for a host, verified.
func shake(s *harness.Server, host string, roots *x509.CertPool) (*x509.Certificate, error) {
	conn, err := tls.Dial("tcp", strings.TrimPrefix(s.HTTPS, "https://"), &tls.Config{ServerName: host, RootCAs: roots, NextProtos: []string{"h2"}})
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if got := conn.ConnectionState().NegotiatedProtocol; got != "h2" {
		return nil, fmt.Errorf("the protocol is %q, want h2", got)
	}
	return conn.ConnectionState().PeerCertificates[0], nil
}

// awaitCertificate waits for a verified certificate of a host that is not one of
// the others.
func awaitCertificate(t *testing.T, s *harness.Server, host string, roots *x509.CertPool, others ...*x509.Certificate) *x509.Certificate {
	t.Helper()
	var got *x509.Certificate
	harness.Eventually(t, 2*patience, "a certificate of "+host, func() (err error) {
		if got, err = shake(s, host, roots); err != nil {
			return err
		}
		for _, other := range others {
			if got.Equal(other) {
				return errors.New("it is the one from before")
			}
		}
		return nil
	})
	return got
}

// TestACMEOverTLS proves two names by tls-alpn-01. The certificates outlive the
// process, sealed.
func TestACMEOverTLS(t *testing.T) {
	httpPort, tlsPort := freePort(t), freePort(t)
	p := startPebble(t, pebbleConfig{http: freePort(t), tls: tlsPort, lifetime: 90 * 24 * time.Hour})
	s := certified(t, p, httpPort, tlsPort, "pbx.selvage.test", "id.selvage.test")
	roots := p.roots(t)
	pbx := awaitCertificate(t, s, "pbx.selvage.test", roots)
	id := awaitCertificate(t, s, "id.selvage.test", roots)
	for _, host := range []string{"other.selvage.test", "selvage.test", "x.pbx.selvage.test", "localhost"} {
		if got, err := shake(s, host, roots); err == nil {
			t.Errorf("a stranger, %s, is shown a certificate of %v", host, got.DNSNames)
		}
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "pbx.selvage.test"}}}
	resp, err := client.Get(s.HTTPS + "/.well-known/openid-configuration")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("discovery = %d, want 200", resp.StatusCode)
	}

	if err := s.Stop(t); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"selvage.db", "selvage.db-wal"} {
		text, err := os.ReadFile(filepath.Join(s.Data, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		for _, secret := range []string{"PRIVATE KEY", "BEGIN CERTIFICATE"} {
			if bytes.Contains(text, []byte(secret)) {
				t.Errorf("%s has a %s in it that is not sealed", name, secret)
			}
		}
	}
	s.Restart(t)
	for host, before := range map[string]*x509.Certificate{"pbx.selvage.test": pbx, "id.selvage.test": id} {
		if after := awaitCertificate(t, s, host, roots); !after.Equal(before) {
			t.Errorf("after a restart %s has another certificate: it was asked for again", host)
		}
	}
}

// TestACMEOverHTTP proves a name by http-01, and renews its certificate.
func TestACMEOverHTTP(t *testing.T) {
	httpPort := freePort(t)
	p := startPebble(t, pebbleConfig{http: httpPort, tls: freePort(t), lifetime: 15 * time.Second})
	s := certified(t, p, httpPort, freePort(t), "pbx.selvage.test")
	roots := p.roots(t)
	first := awaitCertificate(t, s, "pbx.selvage.test", roots)
	awaitCertificate(t, s, "pbx.selvage.test", roots, first)
	for path, want := range map[string]int{"/.well-known/acme-challenge/nothing": 404, "/.well-known/openid-configuration": 200} {
		s.Get(t, path, harness.Header("Host", "pbx.selvage.test")).Want(t, want)
	}
	s.Get(t, "/.well-known/acme-challenge/nothing").Want(t, 403)
}

// TestACMEFails tells why a name could not be proven, and serves the rest.
func TestACMEFails(t *testing.T) {
	httpPort, tlsPort := freePort(t), freePort(t)
	p := startPebble(t, pebbleConfig{http: freePort(t), tls: freePort(t), lifetime: time.Hour})
	s := certified(t, p, httpPort, tlsPort, "pbx.selvage.test")
	harness.Eventually(t, patience, "the reason", func() error {
		log := s.Log()
		for _, want := range []string{"asking for a certificate", "tls-alpn-01: ", "http-01: ", "connection refused", "again_in"} {
			if !strings.Contains(log, want) {
				return fmt.Errorf("the log has no %q", want)
			}
		}
		return nil
	})
	if got, err := shake(s, "pbx.selvage.test", p.roots(t)); err == nil {
		t.Errorf("a certificate of %v is shown", got.DNSNames)
	}
	s.Get(t, "/.well-known/openid-configuration").Want(t, 200)
}
