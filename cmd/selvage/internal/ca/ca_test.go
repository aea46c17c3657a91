package ca

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func open(t *testing.T, c Config) *Authority {
	t.Helper()
	a, err := Open(c)
	if err != nil {
		t.Fatalf("Open(%+v) = %v, want nil", c, err)
	}
	return a
}

// client returns a client that trusts only the authority and expects the given server name.
func client(a *Authority, name string) *http.Client {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(a.PEM())
	conf := &tls.Config{RootCAs: roots, ServerName: name}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: conf}}
}

// TestTLS shows which names clients accept, and that TLS 1.1 is refused.
func TestTLS(t *testing.T) {
	a := open(t, Config{Dir: t.TempDir(), Hosts: []string{"pbx.example.org", "192.168.1.7", "203.0.113.9"}})
	l, err := tls.Listen("tcp", "127.0.0.1:0", a.TLS())
	if err != nil {
		t.Fatal(err)
	}

	s := &http.Server{Handler: http.NotFoundHandler(), ErrorLog: log.New(io.Discard, "", 0)}
	go s.Serve(l)
	defer s.Close()

	url := "https://" + l.Addr().String()
	accepted := []string{
		"localhost",
		"puc.localhost",
		"fabric.localhost",
		"id.localhost",
		"127.0.0.1",
		"::1",
		"pbx.example.org",
		"192.168.1.7",
		"203.0.113.9",
	}
	for _, name := range accepted {
		resp, err := client(a, name).Get(url)
		if err != nil {
			t.Errorf("the handshake for %s failed: %v", name, err)
			continue
		}
		resp.Body.Close()
	}

	for _, name := range []string{"other.localhost", "example.org", "203.0.113.10"} {
		resp, err := client(a, name).Get(url)
		if err == nil {
			resp.Body.Close()
			t.Errorf("the handshake for %s succeeded, want an error", name)
		}
	}

	old := &tls.Config{MaxVersion: tls.VersionTLS11, InsecureSkipVerify: true}
	if _, err := tls.Dial("tcp", l.Addr().String(), old); err == nil {
		t.Error("a TLS 1.1 handshake succeeded")
	}
}

// TestLimits shows that the key cannot certify hosts outside its limits.
func TestLimits(t *testing.T) {
	a := open(t, Config{Dir: t.TempDir()})
	a.hosts = []string{"bank.example"}
	leaf, err := a.issue()
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	if _, err := leaf.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "bank.example"}); err == nil {
		t.Error("a certificate for bank.example verifies")
	}
}

// TestFiles shows that a second start uses the same authority. It also shows that only the owner
// can read the key, and only the owner can write the certificate or the key.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	a, b := open(t, Config{Dir: dir}), open(t, Config{Dir: dir})
	if !a.cert.Equal(b.cert) {
		t.Error("the second start created a different authority")
	}
	for file, want := range map[string]os.FileMode{CertFile: 0o644, KeyFile: 0o600} {
		info, err := os.Stat(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode(); got != want {
			t.Errorf("mode of %s = %v, want %v", file, got, want)
		}
	}
}

// TestRenewal shows that the server's certificate is renewed in its last third.
func TestRenewal(t *testing.T) {
	began := time.Now()
	now := began
	a := open(t, Config{Dir: t.TempDir(), Now: func() time.Time { return now }})
	serials := make(map[string]bool)
	for _, day := range []int{0, 59, 61, 62} {
		now = began.Add(time.Duration(day) * 24 * time.Hour)
		cert, err := a.certificate()
		if err != nil {
			t.Fatal(err)
		}
		serials[cert.Leaf.SerialNumber.String()] = true
		if left := cert.Leaf.NotAfter.Sub(now); left < renewBefore {
			t.Errorf("day %d: the certificate expires in %v, want at least 30 days", day, left)
		}
	}

	if len(serials) != 2 {
		t.Errorf("%d certificates in 62 days, want 2", len(serials))
	}
}

// TestEnds shows that Ends returns the expiry of the authority's own certificate, once that is earlier
// than the expiry of the server's certificate.
func TestEnds(t *testing.T) {
	now := time.Now()
	a := open(t, Config{Dir: t.TempDir(), Now: func() time.Time { return now }})
	if leaf := a.leaf.Leaf.NotAfter; !a.Ends().Equal(leaf) {
		t.Errorf("Ends = %s, want the end of the server's certificate, %s", a.Ends(), leaf)
	}

	now = now.Add(lifetime - 7*24*time.Hour)
	if !a.Ends().Equal(a.cert.NotAfter) {
		t.Errorf("Ends = %s, want the end of the authority's certificate, %s", a.Ends(), a.cert.NotAfter)
	}
}

// TestClockSetBack shows that the server gets a certificate that is valid now if the clock is set back.
func TestClockSetBack(t *testing.T) {
	began := time.Now()
	now, dir := began, t.TempDir()
	clock := func() time.Time { return now }
	open(t, Config{Dir: dir, Now: clock}) // creates the authority
	now = began.Add(365 * 24 * time.Hour)
	a := open(t, Config{Dir: dir, Now: clock})

	now = began
	cert, err := a.certificate()
	if err != nil {
		t.Fatal(err)
	}
	if now.Before(cert.Leaf.NotBefore) {
		t.Errorf("the certificate is valid from %s, want no later than %s", cert.Leaf.NotBefore, now)
	}
}

// TestOpenRefuses shows that Open rejects a certificate that is malformed or expired, does not
// belong to its key, or does not permit a host.
func TestOpenRefuses(t *testing.T) {
	untouched := func(dir string) error { return nil }
	tests := []struct {
		name   string
		spoil  func(dir string) error
		config Config // without Dir
		want   string
	}{
		{
			name:  "a different key",
			spoil: func(dir string) error { return os.Remove(filepath.Join(dir, KeyFile)) },
			want:  "do not match",
		},
		{
			name: "not PEM",
			spoil: func(dir string) error {
				return os.WriteFile(filepath.Join(dir, CertFile), []byte("nothing"), 0o644)
			},
			want: "has no CERTIFICATE",
		},
		{
			name:   "expired",
			spoil:  untouched,
			config: Config{Now: func() time.Time { return time.Now().Add(lifetime + time.Hour) }},
			want:   "expired on",
		},
		{
			name:   "a host that the certificate does not permit",
			spoil:  untouched,
			config: Config{Hosts: []string{"pbx.example.org"}},
			want:   "is not valid for pbx.example.org",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			open(t, Config{Dir: dir})
			if err := tt.spoil(dir); err != nil {
				t.Fatal(err)
			}

			c := tt.config
			c.Dir = dir
			_, err := Open(c)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Open = %v, want an error with %q", err, tt.want)
			}
		})
	}
}

// TestTogether shows that processes that start at the same time use the same authority.
func TestTogether(t *testing.T) {
	dir := t.TempDir()
	authorities := make([]*Authority, 8)
	errs := make([]error, len(authorities))
	var wg sync.WaitGroup
	for i := range authorities {
		wg.Go(func() { authorities[i], errs[i] = Open(Config{Dir: dir}) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for i, a := range authorities {
		if !a.cert.Equal(authorities[0].cert) {
			t.Errorf("process %d has a different authority", i)
		}
	}
}
