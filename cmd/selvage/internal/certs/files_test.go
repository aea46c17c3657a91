package certs

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// makePair returns a certificate and its key in PEM.
func makePair(t *testing.T, from time.Time, lives time.Duration, names ...string) (chain, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    from,
		NotAfter:     from.Add(lives),
		DNSNames:     names,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}

	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}

	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
}

func write(t *testing.T, file string, text []byte, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(file, text, mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, mode); err != nil {
		t.Fatal(err)
	}
}

const day = 24 * time.Hour

// TestOpenFiles shows which certificates are accepted, and with which errors the others are
// rejected.
func TestOpenFiles(t *testing.T) {
	now := time.Now()
	chain, key := makePair(t, now.Add(-day), 90*day, "pbx.example.org")
	other, _ := makePair(t, now.Add(-day), 90*day, "pbx.example.org")
	past, pastKey := makePair(t, now.Add(-91*day), 90*day, "pbx.example.org")
	future, futureKey := makePair(t, now.Add(day), 90*day, "pbx.example.org")

	for _, tt := range []struct {
		name       string
		chain, key []byte
		mode       os.FileMode
		hosts      []string
		want       string // text in the error
	}{
		{"valid", chain, key, 0o600, []string{"pbx.example.org"}, ""},
		{"valid, readable by its owner alone", chain, key, 0o400, nil, ""},
		{"others may read the key", chain, key, 0o644, nil, "others can read DIR/key.pem (mode 644); chmod 600 it"},
		{"a group may read the key", chain, key, 0o640, nil, "others can read"},
		{"another certificate's key", other, key, 0o600, nil, "DIR/cert.pem and DIR/key.pem do not match"},
		{"the chain in reverse order", append(bytes.Clone(other), chain...), key, 0o600, nil,
			"of the first certificate"},
		{"expired", past, pastKey, 0o600, nil, ""},
		{"expired, for another host", past, pastKey, 0o600, []string{"id.example.org"},
			"is not valid for id.example.org"},
		{"not valid yet", future, futureKey, 0o600, nil, "and this machine's clock is at"},
		{"a different host", chain, key, 0o600, []string{"id.example.org"},
			"is not valid for id.example.org, where clients reach this server; it is valid for pbx.example.org"},
		{"no certificate", key, key, 0o600, nil, "DIR/cert.pem has no PEM certificate"},
		{"no key", chain, chain, 0o600, nil, "DIR/key.pem has no unencrypted PEM key"},
		{"empty", nil, nil, 0o600, nil, "has no PEM certificate"},
	} {
		dir := t.TempDir()
		c := FilesConfig{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem"), Hosts: tt.hosts}
		write(t, c.Cert, tt.chain, 0o644)
		write(t, c.Key, tt.key, tt.mode)
		_, err := OpenFiles(c)
		want := strings.ReplaceAll(tt.want, "DIR", dir)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: OpenFiles = %v, want %q", tt.name, err, want)
		}
	}

	if _, err := OpenFiles(FilesConfig{Cert: "nowhere", Key: "nowhere"}); err == nil ||
		!strings.Contains(err.Error(), "reading tls.cert: open nowhere") {
		t.Errorf("OpenFiles of missing files = %v, want an error about tls.cert", err)
	}
}

// TestExpired shows that an expired certificate is served at the start, and logged. It replaces no
// other certificate. A valid certificate replaces it.
func TestExpired(t *testing.T) {
	now := time.Now()
	past, pastKey := makePair(t, now.Add(-91*day), 90*day, "past.example.org")
	chain, key := makePair(t, now.Add(-day), 90*day, "pbx.example.org")
	dir, log := t.TempDir(), new(notes)
	c := FilesConfig{
		Cert: filepath.Join(dir, "cert.pem"),
		Key:  filepath.Join(dir, "key.pem"),
		Log:  slog.New(slog.NewTextHandler(log, nil)),
	}
	put := func(chain, key []byte) {
		write(t, c.Cert, chain, 0o644)
		write(t, c.Key, key, 0o600)
	}

	put(past, pastKey)
	f, err := OpenFiles(c)
	logged := log.take()
	if err != nil || !f.Ends().Before(now) || !strings.Contains(logged, "expired on") {
		t.Fatalf("OpenFiles = %v, and logged %q, want nil and a log line about the expiry", err, logged)
	}

	put(chain, key)
	if err := f.Reload(); err != nil || f.Ends().Before(now) {
		t.Errorf("Reload of a valid certificate = %v, want nil and the valid one in use", err)
	}

	put(past, pastKey)
	if err := f.Reload(); err == nil || f.Ends().Before(now) {
		t.Errorf("Reload of an expired certificate = %v, want an error, and the valid one in use", err)
	}
}

// notes is a log that can be read while other goroutines write it.
type notes struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (n *notes) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.Write(p)
}

// take returns the text that was written since the last call.
func (n *notes) take() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	defer n.text.Reset()
	return n.text.String()
}

// TestRun shows that Run picks up a renewed certificate, and keeps the old one if the
// renewal is incomplete or invalid.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		dir, log := t.TempDir(), new(notes)
		c := FilesConfig{
			Cert:  filepath.Join(dir, "cert.pem"),
			Key:   filepath.Join(dir, "key.pem"),
			Hosts: []string{"a.test"},
			Log:   slog.New(slog.NewTextHandler(log, nil)),
		}
		put := func(names ...string) {
			chain, key := makePair(t, time.Now(), 30*time.Minute, names...)
			write(t, c.Cert, chain, 0o644)
			write(t, c.Key, key, 0o600)
		}

		put("a.test")
		f, err := OpenFiles(c)
		if err != nil {
			t.Fatal(err)
		}

		named := func() string {
			pair, err := f.TLS().GetCertificate(nil)
			if err != nil {
				t.Fatal(err)
			}
			return strings.Join(pair.Leaf.DNSNames, " ")
		}

		go f.Run(ctx)
		for _, tt := range []struct {
			what  string
			do    func()
			names string // names in the certificate that is in use afterwards
			log   string
		}{
			{"nothing changed", func() {}, "a.test", ""},
			{"renewed", func() { put("a.test", "b.test") }, "a.test b.test", "loaded the changed certificate"},
			{"half a certificate", func() { write(t, c.Cert, nil, 0o644) }, "a.test b.test", "has no PEM certificate"},
			{"still half a certificate", func() {}, "a.test b.test", ""},
			{"a certificate for other names", func() { put("c.test") }, "a.test b.test", "is not valid for a.test"},
			{"gone", func() { _ = os.Remove(c.Key) }, "a.test b.test", "no such file"},
			{"valid again", func() { put("a.test", "d.test") }, "a.test d.test", "loaded the changed certificate"},
			{"not renewed", func() { time.Sleep(25 * time.Minute) }, "a.test d.test", "was not renewed in time"},
		} {
			log.take()
			tt.do()
			time.Sleep(3 * lookEvery)
			synctest.Wait()
			if got := log.take(); named() != tt.names || !strings.Contains(got, tt.log) || tt.log == "" &&
				got != "" || strings.Count(got, "\n") > 1 {
				t.Errorf("%s: in use is %q, the log has %q, want %q and %q", tt.what, named(), got, tt.names, tt.log)
			}
		}

		stop()
		synctest.Wait()
	})
}
