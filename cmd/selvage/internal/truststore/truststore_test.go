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

	ours, older := cert("us", 1, true), cert("us", 2, true)
	theirs, servers := cert("them", 2, true), cert("us", 2, false)
	type certificates = []*x509.Certificate
	tests := []struct {
		name    string
		held    certificates
		trusted bool
		want    State
	}{
		{name: "empty", held: nil, trusted: true, want: Absent},
		{name: "only a foreign one", held: certificates{theirs}, trusted: true, want: Absent},
		{name: "a server's certificate with our name", held: certificates{servers}, trusted: true, want: Absent},
		{name: "ours", held: certificates{theirs, ours}, trusted: true, want: Trusted},
		{name: "ours, not trusted", held: certificates{ours}, trusted: false, want: Untrusted},
		{name: "an older one", held: certificates{older}, trusted: true, want: Another},
		{name: "an older one next to ours", held: certificates{ours, older}, trusted: true, want: Another},
	}
	for _, tt := range tests {
		c := Config{Name: "us", Cert: ours}
		isTrusted := func(*x509.Certificate) bool { return tt.trusted }
		if got := c.stateOf(tt.held, isTrusted); got != tt.want {
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

	getenv := func(name string) string {
		if name == "HOME" {
			return home
		}
		return ""
	}
	a, err := whoIs(getenv)
	if err != nil {
		t.Fatal(err)
	}
	if got := append(a.chromium(), a.firefox()...); len(got) > 0 {
		t.Errorf("an empty home has the stores %v, want none", got)
	}

	touch(
		".pki/nssdb/cert9.db",
		".local/share/pki/nssdb/cert9.db",
		"snap/chromium/current/.pki/nssdb/cert9.db",
		".var/app/org.chromium.Chromium/data/pki/nssdb/cert9.db",
		".mozilla/firefox/a/cert9.db",
		".mozilla/firefox/Crash Reports/x",
		".config/mozilla/firefox/b/cert9.db",
		"snap/firefox/common/.mozilla/firefox/c/cert9.db",
	)
	inHome := func(names ...string) (paths []string) {
		for _, name := range names {
			paths = append(paths, filepath.Join(home, name))
		}
		return paths
	}
	chromium := inHome(
		".pki/nssdb",
		".local/share/pki/nssdb",
		"snap/chromium/current/.pki/nssdb",
		".var/app/org.chromium.Chromium/data/pki/nssdb",
	)
	if got := a.chromium(); !slices.Equal(got, chromium) {
		t.Errorf("the stores of Chromium are %q, want %q", got, chromium)
	}
	firefox := inHome(
		".config/mozilla/firefox/b",
		".mozilla/firefox/a",
		"snap/firefox/common/.mozilla/firefox/c",
	)
	if got := a.firefox(); !slices.Equal(got, firefox) {
		t.Errorf("the stores of Firefox are %q, want %q", got, firefox)
	}

	if _, err := whoIs(func(string) string { return "" }); err == nil {
		t.Error("whoIs without HOME = nil, want an error")
	}
}
