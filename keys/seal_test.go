package keys

import (
	"bytes"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/json"
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
	jwe, err := jose.ParseEncryptedCompact(
		ours, []jose.KeyAlgorithm{jose.DIRECT}, []jose.ContentEncryption{jose.A256GCM})
	if err != nil {
		t.Fatalf("ParseEncryptedCompact(%q): %v", ours, err)
	}

	payload, err := jwe.Decrypt(key)
	if want := `{"sub":"alice"}`; err != nil || string(payload) != want {
		t.Errorf("Decrypt(%q) = %q, %v, want %q", ours, payload, err, want)
	}

	opts := (&jose.EncrypterOptions{}).WithType("SAT").WithHeader("ch", "elsewhere:1")
	encrypter, err := jose.NewEncrypter(
		jose.A256GCM, jose.Recipient{Algorithm: jose.DIRECT, Key: jose.JSONWebKey{Key: key, KeyID: "k1"}}, opts)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := encrypter.Encrypt([]byte(`{"sub":"bob"}`))
	if err != nil {
		t.Fatal(err)
	}

	token, err := theirs.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]json.RawMessage
	if ok := sealer.Open(token, &got); !ok || string(got["sub"]) != `"bob"` {
		t.Errorf("Open(%q) = %v, %s, want bob", token, ok, got["sub"])
	}
}

// sealRing returns a ring whose only key is k1, derived from root.
func sealRing(root []byte) *Ring {
	ring := &Ring{}
	ring.latest.Store(&snapshot{roots: map[string][]byte{"k1": root}, makers: map[Use]Record{Seal: {Kid: "k1"}}})
	return ring
}
