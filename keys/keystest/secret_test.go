package keystest

import (
	"bytes"
	"testing"

	"github.com/selvage/selvage/keys"
)

func TestSecret(t *testing.T) {
	rows := openStore(t)
	ring := openRing(t, rows)
	sealed, err := ring.SealSecret("certificate a.test", []byte("key"))
	check(t, err)
	for name, node := range map[string]*keys.Ring{"this": ring, "another": openRing(t, rows)} {
		got, err := node.OpenSecret("certificate a.test", sealed)
		if err != nil || string(got) != "key" {
			t.Errorf("OpenSecret on %s node = %q, %v, want key", name, got, err)
		}
	}

	config := keys.Config{Store: openStore(t), Master: bytes.Repeat([]byte("k"), 32)}
	stored := records(t, rows)[0]
	for _, tt := range []struct {
		what         string
		ring         *keys.Ring
		name, sealed string
	}{
		{"a different name", ring, "certificate b.test", sealed},
		{"a different master key", open(t, config), "certificate a.test", sealed},
		{"changed", ring, "certificate a.test", flip(sealed)},
		{"empty", ring, "certificate a.test", ""},
		{"a key of the ring", ring, stored.Kid, stored.Sealed},
	} {
		if got, err := tt.ring.OpenSecret(tt.name, tt.sealed); err == nil {
			t.Errorf("OpenSecret, %s: got %q, want an error", tt.what, got)
		}
	}
}
