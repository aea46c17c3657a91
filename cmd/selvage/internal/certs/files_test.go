package certs

import (
	"bytes"
	"cmp"
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
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// makePair returns a certificate and its key in PEM.
func makePair(t *testing.T, start time.Time, lifetime time.Duration, names ...string) (chain, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    start,
		NotAfter:     start.Add(lifetime),
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

// TestOpenFiles shows which certificates OpenFiles accepts, and with which errors it rejects others.
func TestOpenFiles(t *testing.T) {
	now := time.Now()
	const host, otherHost = "pbx.example.org", "id.example.org"
	chain, key := makePair(t, now.Add(-day), 90*day, host)
	other, _ := makePair(t, now.Add(-day), 90*day, host)
	past, pastKey := makePair(t, now.Add(-91*day), 90*day, host)
	future, futureKey := makePair(t, now.Add(day), 90*day, host)

	tests := []struct {
		name       string
		chain, key []byte
		mode       os.FileMode // mode of the key's file; 0 means 0600
		host       string      // host for which the certificate must be valid; "" means any
		want       string      // text in the error, or "" for none
	}{
		{name: "valid", chain: chain, key: key, host: host},
		{name: "valid, readable by its owner alone", chain: chain, key: key, mode: 0o400},
		{
			name:  "others may read the key",
			chain: chain,
			key:   key,
			mode:  0o644,
			want:  "others can read DIR/key.pem (mode 644); chmod 600 it",
		},
		{name: "a group may read the key", chain: chain, key: key, mode: 0o640, want: "others can read"},
		{
			name:  "the key of a different certificate",
			chain: other,
			key:   key,
			want:  "DIR/cert.pem and DIR/key.pem do not match",
		},
		{
			name:  "the chain in reverse order",
			chain: slices.Concat(other, chain),
			key:   key,
			want:  "of the first certificate",
		},
		{name: "expired", chain: past, key: pastKey},
		{
			name:  "expired, for a different host",
			chain: past,
			key:   pastKey,
			host:  otherHost,
			want:  "is not valid for id.example.org",
		},
		{name: "not valid yet", chain: future, key: futureKey, want: "and this machine's clock is at"},
		{
			name:  "a different host",
			chain: chain,
			key:   key,
			host:  otherHost,
			want:  "is not valid for id.example.org, where clients reach this server; it is valid for pbx.example.org",
		},
		{name: "no certificate", chain: key, key: key, want: "DIR/cert.pem has no PEM certificate"},
		{name: "no key", chain: chain, key: chain, want: "DIR/key.pem has no unencrypted PEM key"},
		{name: "empty", want: "has no PEM certificate"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			c := FilesConfig{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
			if tt.host != "" {
				c.Hosts = []string{tt.host}
			}
			write(t, c.Cert, tt.chain, 0o644)
			write(t, c.Key, tt.key, cmp.Or(tt.mode, 0o600))

			_, err := OpenFiles(c)
			if tt.want == "" {
				if err != nil {
					t.Errorf("OpenFiles = %v, want nil", err)
				}
				return
			}
			want := strings.ReplaceAll(tt.want, "DIR", dir)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("OpenFiles = %v, want an error with %q", err, want)
			}
		})
	}

	_, err := OpenFiles(FilesConfig{Cert: "nowhere", Key: "nowhere"})
	if err == nil || !strings.Contains(err.Error(), "reading tls.cert: open nowhere") {
		t.Errorf("OpenFiles of missing files = %v, want an error about tls.cert", err)
	}
}

// TestExpired shows that if the certificate has expired at the start, it is served and the expiry is
// logged. A valid certificate replaces it, but an expired certificate replaces no other.
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
	if err != nil {
		t.Fatal(err)
	}
	if ends := f.Ends(); !ends.Before(now) {
		t.Fatalf("the certificate in use ends at %s, want the expired one", ends)
	}
	if logged := log.take(); !strings.Contains(logged, "expired on") {
		t.Fatalf("OpenFiles logged %q, want a line about the expiry", logged)
	}

	put(chain, key)
	if err := f.Reload(); err != nil {
		t.Errorf("Reload of a valid certificate = %v, want nil", err)
	}
	if ends := f.Ends(); ends.Before(now) {
		t.Errorf("after a reload, the certificate in use ends at %s, want the valid one", ends)
	}

	put(past, pastKey)
	if err := f.Reload(); err == nil {
		t.Error("Reload of an expired certificate = nil, want an error")
	}
	if ends := f.Ends(); ends.Before(now) {
		t.Errorf("after a failed reload, the certificate in use ends at %s, want the valid one", ends)
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

// TestRun shows that Run picks up a renewed certificate, and keeps the certificate in use if the new files
// are incomplete or invalid.
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
		steps := []struct {
			name  string
			do    func()
			names string // names in the certificate that is in use afterwards
			log   string // text in the only line of the log, or "" for no line
		}{
			{name: "nothing changed", do: func() {}, names: "a.test"},
			{
				name:  "renewed",
				do:    func() { put("a.test", "b.test") },
				names: "a.test b.test",
				log:   "loaded the changed certificate",
			},
			{
				name:  "half a certificate",
				do:    func() { write(t, c.Cert, nil, 0o644) },
				names: "a.test b.test",
				log:   "has no PEM certificate",
			},
			{name: "still half a certificate", do: func() {}, names: "a.test b.test"},
			{
				name:  "a certificate for other names",
				do:    func() { put("c.test") },
				names: "a.test b.test",
				log:   "is not valid for a.test",
			},
			{
				name:  "gone",
				do:    func() { _ = os.Remove(c.Key) },
				names: "a.test b.test",
				log:   "no such file",
			},
			{
				name:  "valid again",
				do:    func() { put("a.test", "d.test") },
				names: "a.test d.test",
				log:   "loaded the changed certificate",
			},
			{
				name:  "not renewed",
				do:    func() { time.Sleep(25 * time.Minute) },
				names: "a.test d.test",
				log:   "was not renewed in time",
			},
		}
		for _, step := range steps {
			log.take()
			step.do()
			time.Sleep(3 * lookEvery)
			synctest.Wait()

			if got := named(); got != step.names {
				t.Errorf("%s: the certificate in use is for %q, want %q", step.name, got, step.names)
			}
			wantLines := 0
			if step.log != "" {
				wantLines = 1
			}
			logged := log.take()
			if got := strings.Count(logged, "\n"); got != wantLines {
				t.Errorf("%s: the log has %d lines, want %d:\n%s", step.name, got, wantLines, logged)
			}
			if !strings.Contains(logged, step.log) {
				t.Errorf("%s: the log is %q, want it to contain %q", step.name, logged, step.log)
			}
		}

		stop()
		synctest.Wait()
	})
}

// TestRunLater shows that if a new certificate is not valid yet, Run uses it as soon as it is valid, and
// logs the error only once until then.
func TestRunLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		dir, log := t.TempDir(), new(notes)
		c := FilesConfig{
			Cert: filepath.Join(dir, "cert.pem"),
			Key:  filepath.Join(dir, "key.pem"),
			Log:  slog.New(slog.NewTextHandler(log, nil)),
		}
		put := func(start time.Time) {
			chain, key := makePair(t, start, 90*day, "a.test")
			write(t, c.Cert, chain, 0o644)
			write(t, c.Key, key, 0o600)
		}

		put(time.Now())
		f, err := OpenFiles(c)
		if err != nil {
			t.Fatal(err)
		}
		older := f.Ends()
		go f.Run(ctx)
		put(time.Now().Add(10 * time.Minute))
		time.Sleep(9 * time.Minute)
		if !f.Ends().Equal(older) {
			t.Error("a certificate that is not valid yet is in use")
		}
		logged := log.take()
		if n := strings.Count(logged, "\n"); n != 1 || !strings.Contains(logged, "is not valid before") {
			t.Errorf("the log has %d lines, want one about the certificate:\n%s", n, logged)
		}

		time.Sleep(3 * time.Minute)
		if !f.Ends().After(older) {
			t.Errorf("the certificate in use ends at %s, want the newer one", f.Ends())
		}
		stop()
		synctest.Wait()
	})
}
