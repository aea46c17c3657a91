// Package keystest tests package keys with the store; see docs/testing.md.
package keystest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/selvage/selvage/keys"
	"github.com/selvage/selvage/store"
	"github.com/selvage/selvage/store/storetest"
)

// openStore opens an empty store.
func openStore(t testing.TB) *store.Store {
	t.Helper()
	return storetest.Rows(t)
}

// openRing opens a ring that uses the clock of the machine.
func openRing(t testing.TB, s keys.Store) *keys.Ring {
	t.Helper()
	return open(t, keys.Config{Store: s, Master: make([]byte, 32)})
}

type claims struct {
	Sub string `json:"sub"`
}

func TestSealOpen(t *testing.T) {
	rows := openStore(t)
	ring := openRing(t, rows)
	sat := ring.Sealer("sat", "SAT", "puc.localhost:8443")
	token, err := sat.Seal(claims{"alice"})
	if err != nil {
		t.Fatal(err)
	}
	var header map[string]string
	if err := json.Unmarshal([]byte(head(t, token)), &header); err != nil {
		t.Fatal(err)
	}

	for name, want := range map[string]string{
		"alg": "dir",
		"enc": "A256GCM",
		"typ": "SAT",
		"ch":  "puc.localhost:8443",
	} {
		if header[name] != want {
			t.Errorf("header %s = %q, want %q", name, header[name], want)
		}
	}

	node := openRing(t, rows).Sealer("sat", "SAT", "elsewhere:1") // on the same rows
	for name, sealer := range map[string]*keys.Sealer{"this": sat, "another": node} {
		var got claims
		if ok := sealer.Open(token, &got); !ok || got.Sub != "alice" {
			t.Errorf("Open on %s node = %v, %q, want alice", name, ok, got.Sub)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	ring := openRing(t, openStore(t))
	sat := ring.Sealer("sat", "SAT", "puc.localhost:8443")
	token, err := sat.Seal(claims{"alice"})
	check(t, err)
	var header map[string]any
	check(t, json.Unmarshal([]byte(head(t, token)), &header))
	with := func(member string, value any) string { // the token with another header
		changed := maps.Clone(header)
		changed[member] = value
		return rehead(t, token, changed)
	}
	other := openRing(t, openStore(t))

	tests := []struct {
		name   string
		sealer *keys.Sealer
		token  string
	}{
		{"a different purpose", ring.Sealer("guest", "SAT", "puc.localhost:8443"), token},
		{"a different typ", ring.Sealer("sat", "Refresh", "puc.localhost:8443"), token},
		{"a different ring", other.Sealer("sat", "SAT", "puc.localhost:8443"), token},
		{"truncated", sat, token[:len(token)-1]},
		{"changed", sat, token[:len(token)-2] + flip(token[len(token)-2:])},
		{"changed header", sat, with("ch", "evil")},
		{"zip", sat, with("zip", "DEF")},
		{"crit", sat, with("crit", []string{"x"})},
		{"a path as kid", sat, with("kid", "../../dev/null")},
		{"a number as kid", sat, with("kid", 1)},
		{"empty", sat, ""},
		{"dots", sat, "...."},
		{"huge", sat, strings.Repeat("a", 1<<20)},
	}
	for _, tt := range tests {
		var got claims
		if tt.sealer.Open(tt.token, &got) {
			t.Errorf("%s: Open = true, %q, want false", tt.name, got.Sub)
		}
	}
}

// head returns the decoded header of a token.
func head(t *testing.T, token string) string {
	t.Helper()
	part, _, _ := strings.Cut(token, ".")
	raw, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// flip returns s with a different first character.
func flip(s string) string {
	if s[0] == 'A' {
		return "B" + s[1:]
	}
	return "A" + s[1:]
}

// rehead returns a token with another header.
func rehead(t *testing.T, token string, header map[string]any) string {
	t.Helper()
	raw, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(token, ".")
	return base64.RawURLEncoding.EncodeToString(raw) + "." + rest
}

func TestVerifyJWS(t *testing.T) {
	ring, other := openRing(t, openStore(t)), openRing(t, openStore(t))
	for _, alg := range []keys.Use{keys.RS256, keys.ES256} {
		token, err := ring.Sign(alg, "at+jwt", claims{"alice"})
		check(t, err)
		parts := strings.Split(token, ".")
		header, payload, signature := parts[0], parts[1], parts[2]
		none := encoded(`{"alg":"none","typ":"at+jwt"}`)
		bob := encoded(`{"sub":"bob"}`)

		tests := []struct {
			name, token, typ string
			ring             *keys.Ring
			want             bool
		}{
			{"unchanged", token, "at+jwt", ring, true},
			{"a different typ", token, "JWT", ring, false},
			{"a different ring", token, "at+jwt", other, false},
			{"no signature", header + "." + payload + ".", "at+jwt", ring, false},
			{"alg none", none + "." + payload + ".", "at+jwt", ring, false},
			{"changed payload", header + "." + bob + "." + signature, "at+jwt", ring, false},
			{"not a token", "x", "at+jwt", ring, false},
		}
		for _, tt := range tests {
			if _, ok := tt.ring.VerifyJWS(tt.token, tt.typ); ok != tt.want {
				t.Errorf("%s, %s: VerifyJWS = %v, want %v", alg, tt.name, ok, tt.want)
			}
		}
	}
}

func TestJWKS(t *testing.T) {
	var set jose.JSONWebKeySet
	if err := json.Unmarshal(openRing(t, openStore(t)).JWKS().Body, &set); err != nil {
		t.Fatal(err)
	}
	if got, want := len(set.Keys), 2*len(keys.Algorithms()); got != want { // current and next keys
		t.Errorf("JWKS has %d keys, want %d", got, want)
	}
	seen := make(map[string]bool)
	for _, k := range set.Keys {
		if !k.IsPublic() {
			t.Errorf("the key %s is private, want a public key", k.KeyID)
		}
		if k.Use != "sig" {
			t.Errorf("the key %s has the use %q, want sig", k.KeyID, k.Use)
		}
		if seen[k.KeyID] {
			t.Errorf("the key %s is in the JWKS twice", k.KeyID)
		}
		seen[k.KeyID] = true
	}
}

// TestOpenTogether shows that nodes that start at the same time agree on one ring.
func TestOpenTogether(t *testing.T) {
	rows := openStore(t)
	rings := make([]*keys.Ring, 8)
	var wg sync.WaitGroup
	for i := range rings {
		wg.Go(func() { rings[i] = openRing(t, rows) })
	}

	wg.Wait()
	for _, r := range rings {
		if err := r.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, want := r.JWKS().ETag, rings[0].JWKS().ETag; got != want {
			t.Errorf("the ETag of a node's JWKS is %s, want %s, as on the first node", got, want)
		}
	}
}

func TestOpenWithAnotherMaster(t *testing.T) {
	rows := openStore(t)
	openRing(t, rows)
	other := bytes.Repeat([]byte("k"), 32)
	_, err := keys.Open(t.Context(), keys.Config{Store: rows, Master: other})
	if err == nil || !strings.Contains(err.Error(), "master key") {
		t.Errorf("Open with a different master key: %v, want an error that names the master key", err)
	}
}

func TestReadMaster(t *testing.T) {
	file := filepath.Join(t.TempDir(), "master.key")
	read := make([][]byte, 8)
	var wg sync.WaitGroup
	for i := range read {
		wg.Go(func() {
			var err error
			if read[i], err = keys.ReadMaster(file); err != nil {
				t.Error(err)
			}
		})
	}

	wg.Wait()
	if len(read[0]) != 32 {
		t.Errorf("ReadMaster returned %d bytes, want 32", len(read[0]))
	}
	for _, key := range read[1:] {
		if !bytes.Equal(key, read[0]) {
			t.Errorf("ReadMaster returned %x, another caller got %x, want the same key", key, read[0])
		}
	}

	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode != 0o600 {
		t.Errorf("the file has mode %o, want 600", mode)
	}
	if err := os.WriteFile(file, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}

	if _, err := keys.ReadMaster(file); err == nil {
		t.Error("ReadMaster of a short key: got nil, want an error")
	}
}

func BenchmarkSeal(b *testing.B) {
	sat := openRing(b, openStore(b)).Sealer("sat", "SAT", "puc.localhost:8443")
	for b.Loop() {
		if _, err := sat.Seal(claims{"alice"}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	sat := openRing(b, openStore(b)).Sealer("sat", "SAT", "puc.localhost:8443")
	token, err := sat.Seal(claims{"alice"})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		var got claims
		if !sat.Open(token, &got) {
			b.Fatal("Open = false, want true")
		}
	}
}

func BenchmarkSign(b *testing.B) {
	r := openRing(b, openStore(b))
	for _, alg := range keys.Algorithms() {
		b.Run(string(alg), func(b *testing.B) {
			for b.Loop() {
				if _, err := r.Sign(alg, "at+jwt", claims{"alice"}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
