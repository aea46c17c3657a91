package keystest

import (
	"strings"
	"testing"

	"github.com/selvage/selvage/keys"
)

func TestCode(t *testing.T) {
	rows, clock := openStore(t), &manualClock{}
	r, other := open(t, clock.node(rows)), open(t, clock.node(rows))
	code, err := r.Code("links of one", "message")
	check(t, err)
	keyID, mac, _ := strings.Cut(code, ".")

	tests := []struct {
		name                   string
		purpose, message, code string
		want                   bool
	}{
		{"unchanged", "links of one", "message", code, true},
		{"a different purpose", "links of two", "message", code, false},
		{"a different message", "links of one", "massage", code, false},
		{"none", "links of one", "message", "", false},
		{"the kid alone", "links of one", "message", keyID, false},
		{"no code", "links of one", "message", keyID + ".", false},
		{"an unknown key", "links of one", "message", "nobody." + mac, false},
		{"no key", "links of one", "message", "." + mac, false},
		{"longer", "links of one", "message", code + "AA", false},
		{"shorter", "links of one", "message", code[:len(code)-2], false},
		{"padded", "links of one", "message", code + "=", false},
		{"an unused bit set", "links of one", "message",
			code[:len(code)-1] + string(code[len(code)-1]+1), false},
	}

	for _, tt := range tests {
		for node, ring := range map[string]*keys.Ring{"the same node": r, "another node": other} {
			if got := ring.VerifyCode(tt.purpose, tt.message, tt.code); got != tt.want {
				t.Errorf("%s on %s: VerifyCode(%q, %q, %q) = %v, want %v", tt.name, node, tt.purpose,
					tt.message, tt.code, got, tt.want)
			}
		}
	}
}

// TestCodeOutlivesItsKey shows that a code is valid after its key was retired, but not after the
// key was revoked.
func TestCodeOutlivesItsKey(t *testing.T) {
	rows, clock := openStore(t), &manualClock{}
	r, other := open(t, clock.node(rows)), open(t, clock.node(rows))
	old, err := r.Code("p", "m")
	check(t, err)
	for range 2 {
		_, err = r.Rotate(t.Context(), keys.Seal, true)
		check(t, err)
	}

	fresh, err := r.Code("p", "m")
	check(t, err)
	if strings.HasPrefix(fresh, old[:36]) {
		t.Error("Code after a rotation uses the old key")
	}

	for _, code := range []string{old, fresh} {
		if !other.VerifyCode("p", "m", code) { // the other node has not read the new key yet
			t.Errorf("VerifyCode(%q) after a rotation = false, want true", code)
		}
	}

	check(t, r.Retire(t.Context(), old[:36]))
	check(t, other.Sync(t.Context()))
	for node, ring := range map[string]*keys.Ring{"the same node": r, "another node": other} {
		if ring.VerifyCode("p", "m", old) {
			t.Errorf("a code of a revoked key is still valid on %s", node)
		}
	}
}
