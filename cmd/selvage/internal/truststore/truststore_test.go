package truststore

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestStateOf shows the state of a store, depending on the certificates in it.
func TestStateOf(t *testing.T) {
	cert := func(name string, raw byte, ca bool) *x509.Certificate {
		return &x509.Certificate{Raw: []byte{raw}, Subject: pkix.Name{CommonName: name}, IsCA: ca}
	}

	ours := cert("us", 1, true)
	for _, tt := range []struct {
		name    string
		held    []*x509.Certificate
		trusted bool
		want    State
	}{
		{"empty", nil, true, Absent},
		{"others'", []*x509.Certificate{cert("them", 2, true)}, true, Absent},
		{"a server's certificate with our name", []*x509.Certificate{cert("us", 2, false)}, true, Absent},
		{"ours", []*x509.Certificate{cert("them", 2, true), ours}, true, Trusted},
		{"ours, not trusted", []*x509.Certificate{ours}, false, Untrusted},
		{"an older one", []*x509.Certificate{cert("us", 2, true)}, true, Another},
		{"an older one next to ours", []*x509.Certificate{ours, cert("us", 2, true)}, true, Another},
	} {
		c := Config{Name: "us", Cert: ours}
		if got := c.stateOf(tt.held, func(*x509.Certificate) bool { return tt.trusted }); got != tt.want {
			t.Errorf("%s: stateOf = %s, want %s", tt.name, got, tt.want)
		}
	}

	if got := (Config{Name: "us"}).stateOf([]*x509.Certificate{ours}, nil); got != Another {
		t.Errorf("without a certificate: stateOf = %s, want %s", got, Another)
	}
}

// TestHomes shows where browser stores are found.
func TestHomes(t *testing.T) {
	home := t.TempDir()
	touch := func(paths ...string) {
		for _, p := range paths {
			file := filepath.Join(home, p)
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}

	a, err := whoIs(func(name string) string { return map[string]string{"HOME": home}[name] })
	if err != nil {
		t.Fatal(err)
	}
	if got := append(a.chromium(), a.firefox()...); len(got) > 0 {
		t.Errorf("an empty home has the stores %v, want none", got)
	}

	touch(".pki/nssdb/cert9.db", ".local/share/pki/nssdb/cert9.db",
		"snap/chromium/current/.pki/nssdb/cert9.db", ".var/app/org.chromium.Chromium/data/pki/nssdb/cert9.db",
		".mozilla/firefox/a/cert9.db", ".mozilla/firefox/Crash Reports/x",
		".config/mozilla/firefox/b/cert9.db", "snap/firefox/common/.mozilla/firefox/c/cert9.db")
	for i, tt := range []struct{ got, want []string }{
		{a.chromium(), []string{".pki/nssdb", ".local/share/pki/nssdb", "snap/chromium/current/.pki/nssdb",
			".var/app/org.chromium.Chromium/data/pki/nssdb"}},
		{a.firefox(), []string{".config/mozilla/firefox/b", ".mozilla/firefox/a",
			"snap/firefox/common/.mozilla/firefox/c"}},
	} {
		for j := range tt.want {
			tt.want[j] = filepath.Join(home, tt.want[j])
		}
		if !slices.Equal(tt.got, tt.want) {
			t.Errorf("browser %d has %q, want %q", i, tt.got, tt.want)
		}
	}

	if _, err := whoIs(func(string) string { return "" }); err == nil {
		t.Error("an account without a home was found")
	}
}
