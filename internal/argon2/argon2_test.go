package argon2_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"testing"

	"golang.org/x/crypto/argon2"

	ours "github.com/selvage/selvage/internal/argon2"
)

// TestSameKeys shows that the keys equal those of golang.org/x/crypto/argon2 for random passwords,
// salts and costs, even if one Deriver derives all of them.
func TestSameKeys(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	text := func(most int) []byte {
		b := make([]byte, random.IntN(most+1))
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		return b
	}

	var d ours.Deriver
	for range 300 {
		password, salt := text(150), text(40)
		time, memory := 1+random.Uint32N(4), random.Uint32N(3000)
		threads, size := uint8(1+random.Uint32N(2)), 1+random.Uint32N(200)

		got := d.IDKey(password, salt, time, memory, threads, size)
		want := argon2.IDKey(password, salt, time, memory, threads, size)
		if !bytes.Equal(got, want) {
			t.Fatalf("argon2id of password %x, salt %x, t=%d, m=%d, p=%d is %x, want %x",
				password, salt, time, memory, threads, got, want)
		}
	}
}

// TestKnownKey uses the parameters of new hashes. The expected key was computed by Debian's argon2
// (libargon2).
func TestKnownKey(t *testing.T) {
	var d ours.Deriver
	got := hex.EncodeToString(d.IDKey([]byte("correct horse"), []byte("battery staple 1"), 2, 19*1024, 1, 32))
	const want = "cb92a2baa0ae2d044baa72a023acc39ac7f03c7e2e1c9a3eea96b60bc008c398"
	if got != want {
		t.Errorf("the key is %s, want %s", got, want)
	}
}

func BenchmarkIDKey(b *testing.B) {
	password, salt := []byte("correct horse"), []byte("battery staple 1")
	b.Run("selvage", func(b *testing.B) {
		var d ours.Deriver
		for b.Loop() {
			d.IDKey(password, salt, 2, 19*1024, 1, 32)
		}
	})
	b.Run("x/crypto", func(b *testing.B) {
		for b.Loop() {
			argon2.IDKey(password, salt, 2, 19*1024, 1, 32)
		}
	})
}

func ExampleDeriver_IDKey() {
	var d ours.Deriver
	key := d.IDKey([]byte("correct horse"), []byte("battery staple 1"), 2, 19*1024, 1, 32)
	fmt.Println(len(key))
	// Output: 32
}
