package keystest

import (
	"context"
	"strings"
	"testing"

	"github.com/selvage/selvage/keys"
)

func TestSecret(t *testing.T) {
	rows := openStore(t)
	ring, node := openRing(t, rows), openRing(t, rows)
	sealed, err := ring.SealSecret("certificate a.test", []byte("key"))
	if err != nil {
		t.Fatal(err)
	}
	other, err := keys.Open(context.Background(),
		keys.Config{Store: openStore(t), Master: []byte(strings.Repeat("k", 32)), Custody: spared{}})
	if err != nil {
		t.Fatal(err)
	}

	for _, tt := range []struct {
		what   string
		ring   *keys.Ring
		name   string
		sealed string
		ok     bool
	}{
		{"unchanged", ring, "certificate a.test", sealed, true},
		{"another node", node, "certificate a.test", sealed, true},
		{"a different name", ring, "certificate b.test", sealed, false},
		{"a different master key", other, "certificate a.test", sealed, false},
		{"changed", ring, "certificate a.test", flip(sealed), false},
		{"empty", ring, "certificate a.test", "", false},
	} {
		got, err := tt.ring.OpenSecret(tt.name, tt.sealed)
		if (err == nil) != tt.ok || tt.ok && string(got) != "key" {
			t.Errorf("%s: OpenSecret = %q, %v, want success %v", tt.what, got, err, tt.ok)
		}
	}

	records, err := rows.RingKeys(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ring.OpenSecret(records[0].Kid, records[0].Sealed); err == nil {
		t.Error("a key of the ring can be opened as a secret")
	}
}
