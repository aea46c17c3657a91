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

	"github.com/selvage/selvage/test/acme"
	"github.com/selvage/selvage/test/harness"
)

// startCertified starts a server on the given ports. It gets its certificates from an ACME server.
func startCertified(
	t *testing.T, authority *acme.Server, httpPort, tlsPort int, hosts ...string,
) *harness.Server {
	t.Helper()
	return harness.StartConfig(t, harness.Config{
		Args: []string{"--listen", acme.Local(httpPort), "--listen-tls", acme.Local(tlsPort), "--public-url",
			"https://" + hosts[0]},
		Env: authority.Env(hosts...),
	})
}

// TestACMEOverTLS shows that two names are validated by tls-alpn-01, and that their certificates
// are stored sealed and used again after a restart.
func TestACMEOverTLS(t *testing.T) {
	harness.OneBackend(t)
	httpPort, tlsPort := harness.FreePort(t), harness.FreePort(t)
	p := acme.Start(t, acme.Config{HTTP: harness.FreePort(t), TLS: tlsPort, Lifetime: 90 * 24 * time.Hour})
	s := startCertified(t, p, httpPort, tlsPort, "pbx.selvage.test", "id.selvage.test")
	roots := p.Roots(t)
	pbx := acme.Await(t, s, "pbx.selvage.test", roots)
	id := acme.Await(t, s, "id.selvage.test", roots)

	for _, host := range []string{"other.selvage.test", "selvage.test", "x.pbx.selvage.test", "localhost"} {
		if got, err := acme.Shake(s, host, roots); err == nil {
			t.Errorf("the unknown host %s got a certificate for %v", host, got.DNSNames)
		}
	}

	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots,
		ServerName: "pbx.selvage.test"}}}
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
				t.Errorf("%s contains an unsealed %s", name, secret)
			}
		}
	}

	s.Restart(t)
	for host, before := range map[string]*x509.Certificate{"pbx.selvage.test": pbx, "id.selvage.test": id} {
		if after := acme.Await(t, s, host, roots); !after.Equal(before) {
			t.Errorf("after a restart, %s has a different certificate, want the one from before", host)
		}
	}
}

// TestACMEOverHTTP shows that a name is validated by http-01 and its certificate is renewed.
func TestACMEOverHTTP(t *testing.T) {
	harness.OneBackend(t)
	httpPort := harness.FreePort(t)
	p := acme.Start(t, acme.Config{HTTP: httpPort, TLS: harness.FreePort(t), Lifetime: 15 * time.Second})
	s := startCertified(t, p, httpPort, harness.FreePort(t), "pbx.selvage.test")
	roots := p.Roots(t)
	first := acme.Await(t, s, "pbx.selvage.test", roots)
	acme.Await(t, s, "pbx.selvage.test", roots, first)

	for path, want := range map[string]int{"/.well-known/acme-challenge/nothing": 404,
		"/.well-known/openid-configuration": 200} {
		s.Get(t, path, harness.Header("Host", "pbx.selvage.test")).Want(t, want)
	}
	s.Get(t, "/.well-known/acme-challenge/nothing").Want(t, 403)
}

// TestACMEFails shows that, when validation fails, the log contains the reason and the server works
// without a certificate.
func TestACMEFails(t *testing.T) {
	harness.OneBackend(t)
	httpPort, tlsPort := harness.FreePort(t), harness.FreePort(t)
	p := acme.Start(t, acme.Config{HTTP: harness.FreePort(t), TLS: harness.FreePort(t), Lifetime: time.Hour})
	s := startCertified(t, p, httpPort, tlsPort, "pbx.selvage.test")

	harness.Eventually(t, patience, "the reason to be logged", func() error {
		log := s.Log()
		for _, want := range []string{"requesting a certificate", "tls-alpn-01: ", "http-01: ",
			"connection refused", "retry_in"} {
			if !strings.Contains(log, want) {
				return fmt.Errorf("the log does not contain %q", want)
			}
		}
		return nil
	})

	if got, err := acme.Shake(s, "pbx.selvage.test", p.Roots(t)); err == nil {
		t.Errorf("the server presented a certificate for %v, want none", got.DNSNames)
	}
	s.Get(t, "/.well-known/openid-configuration").Want(t, 200)
	if got := string(s.Get(t, s.Ops+"/metrics").Body); !strings.Contains(
		got, "\nselvage_certificate_end_timestamp_seconds 0\n") {
		t.Errorf("the metrics do not report the missing certificate:\n%s", got)
	}
}
