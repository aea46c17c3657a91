// Package keystest tests package keys with the store; see docs/testing.md.
package keystest

import (
	"context"
	"encoding/base64"
	"encoding/json"
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

func openStore(t testing.TB) *store.Store {
	t.Helper()
	return storetest.Rows(t)
}

func openRing(t testing.TB, s keys.Store) *keys.Ring {
	t.Helper()
	r, err := keys.Open(context.Background(), keys.Config{Store: s, Master: make([]byte, 32), Custody: spared{}})
	if err != nil {
		t.Fatal(err)
	}
	return r
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

	second := openRing(t, rows) // another node that uses the same rows
	other := openRing(t, openStore(t))

	tests := []struct {
		name   string
		sealer *keys.Sealer
		token  string
		ok     bool
	}{
		{"unchanged", sat, token, true},
		{"another node", second.Sealer("sat", "SAT", "elsewhere:1"), token, true},
		{"a different purpose", ring.Sealer("guest", "SAT", "puc.localhost:8443"), token, false},
		{"a different typ", ring.Sealer("sat", "Refresh", "puc.localhost:8443"), token, false},
		{"a different ring", other.Sealer("sat", "SAT", "puc.localhost:8443"), token, false},
		{"truncated", sat, token[:len(token)-1], false},
		{"changed", sat, token[:len(token)-2] + flip(token[len(token)-2:]), false},
		{"changed header", sat, rehead(t, token,
			map[string]any{"alg": "dir", "enc": "A256GCM", "kid": header["kid"], "typ": "SAT", "ch": "evil"}), false},
		{"zip", sat, rehead(t, token, map[string]any{
			"alg": "dir",
			"enc": "A256GCM",
			"kid": header["kid"],
			"typ": "SAT",
			"zip": "DEF",
		}), false},
		{"crit", sat, rehead(t, token, map[string]any{
			"alg":  "dir",
			"enc":  "A256GCM",
			"kid":  header["kid"],
			"typ":  "SAT",
			"crit": []string{"x"},
		}), false},
		{"kid of a file", sat, rehead(t, token,
			map[string]any{"alg": "dir", "enc": "A256GCM", "kid": "../../dev/null", "typ": "SAT"}), false},
		{"kid a number", sat, rehead(t, token,
			map[string]any{"alg": "dir", "enc": "A256GCM", "kid": 1, "typ": "SAT"}), false},
		{"empty", sat, "", false},
		{"dots", sat, "....", false},
		{"huge", sat, strings.Repeat("a", 1<<20), false},
	}

	for _, tt := range tests {
		var got claims
		if ok := tt.sealer.Open(tt.token, &got); ok != tt.ok || ok && got.Sub != "alice" {
			t.Errorf("%s: Open = %v, %q, want %v", tt.name, ok, got.Sub, tt.ok)
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

func flip(s string) string {
	if s[0] == 'A' {
		return "B" + s[1:]
	}
	return "A" + s[1:]
}

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
		if err != nil {
			t.Fatal(err)
		}
		parts := strings.Split(token, ".")
		none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","typ":"at+jwt"}`))

		tests := []struct {
			name, token, typ string
			ring             *keys.Ring
			ok               bool
		}{
			{"unchanged", token, "at+jwt", ring, true},
			{"a different typ", token, "JWT", ring, false},
			{"a different ring", token, "at+jwt", other, false},
			{"no signature", parts[0] + "." + parts[1] + ".", "at+jwt", ring, false},
			{"alg none", none + "." + parts[1] + ".", "at+jwt", ring, false},
			{"changed payload", parts[0] + "." +
				base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"bob"}`)) + "." + parts[2], "at+jwt",
				ring, false},
			{"not a token", "x", "at+jwt", ring, false},
		}

		for _, tt := range tests {
			if _, ok := tt.ring.VerifyJWS(tt.token, tt.typ); ok != tt.ok {
				t.Errorf("%s, %s: VerifyJWS = %v, want %v", alg, tt.name, ok, tt.ok)
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
		if !k.IsPublic() || seen[k.KeyID] || k.Use != "sig" {
			t.Errorf("key %s: public %v, duplicate %v, use %q, want true, false and sig",
				k.KeyID, k.IsPublic(), seen[k.KeyID], k.Use)
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
		if err := r.Sync(context.Background()); err != nil {
			t.Fatal(err)
		}
		if got, want := r.JWKS().ETag, rings[0].JWKS().ETag; got != want {
			t.Errorf("the ETag of a node's JWKS is %s, want %s as on the first node", got, want)
		}
	}
}

func TestOpenWithAnotherMaster(t *testing.T) {
	rows := openStore(t)
	openRing(t, rows)
	other := []byte(strings.Repeat("k", 32))
	if _, err := keys.Open(context.Background(), keys.Config{Store: rows, Master: other}); err == nil ||
		!strings.Contains(err.Error(), "master key") {
		t.Errorf("Open with a different master key: %v, want an error that names it", err)
	}
}

func TestReadMaster(t *testing.T) {
	file := filepath.Join(t.TempDir(), "master.key")
	got := make([][]byte, 8)
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() { got[i], _ = keys.ReadMaster(file) })
	}

	wg.Wait()
	for _, key := range got {
		if len(key) != 32 || string(key) != string(got[0]) {
			t.Errorf("ReadMaster returned %x, another caller got %x, want the same 32 bytes", key, got[0])
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
		t.Error("ReadMaster of a short key: no error")
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
			b.Fatal("not opened")
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
