package keys

import (
	"bytes"
	"crypto/hkdf"
	"crypto/sha256"
	"testing"

	"github.com/go-jose/go-jose/v4"
)

// TestSealIsJWE shows that go-jose opens our tokens, and that we open tokens from go-jose.
func TestSealIsJWE(t *testing.T) {
	root := bytes.Repeat([]byte{7}, 32)
	sealer := sealRing(root).Sealer("sat", "SAT", "puc.localhost:8443")
	key, err := hkdf.Key(sha256.New, root, nil, "selvage token sat", 32)
	if err != nil {
		t.Fatal(err)
	}

	ours, err := sealer.Seal(map[string]string{"sub": "alice"})
	if err != nil {
		t.Fatal(err)
	}
	algorithms := []jose.KeyAlgorithm{jose.DIRECT}
	encryptions := []jose.ContentEncryption{jose.A256GCM}
	jwe, err := jose.ParseEncryptedCompact(ours, algorithms, encryptions)
	if err != nil {
		t.Fatalf("ParseEncryptedCompact(%q): %v", ours, err)
	}
	payload, err := jwe.Decrypt(key)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"sub":"alice"}`; string(payload) != want {
		t.Errorf("Decrypt(%q) = %q, want %q", ours, payload, want)
	}

	theirs := sealByJose(t, key, `{"sub":"bob"}`)
	var got map[string]string
	if !sealer.Open(theirs, &got) {
		t.Fatalf("Open(%q) = false, want true", theirs)
	}
	if got["sub"] != "bob" {
		t.Errorf("Open(%q): sub is %q, want bob", theirs, got["sub"])
	}
}

// sealByJose returns a token that go-jose has sealed with a key named k1.
func sealByJose(t *testing.T, key []byte, payload string) string {
	t.Helper()
	recipient := jose.Recipient{Algorithm: jose.DIRECT, Key: jose.JSONWebKey{Key: key, KeyID: "k1"}}
	opts := (&jose.EncrypterOptions{}).WithType("SAT").WithHeader("ch", "elsewhere:1")
	encrypter, err := jose.NewEncrypter(jose.A256GCM, recipient, opts)
	if err != nil {
		t.Fatal(err)
	}
	jwe, err := encrypter.Encrypt([]byte(payload))
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwe.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// sealRing returns a ring whose only key is k1, with the secret root.
func sealRing(root []byte) *Ring {
	ring := &Ring{}
	ring.latest.Store(&snapshot{
		roots:  map[string][]byte{"k1": root},
		makers: map[Use]Record{Seal: {Kid: "k1"}},
	})
	return ring
}
