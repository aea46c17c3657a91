package dpop_test

import (
	"context"
	"crypto"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/selvage/selvage/internal/fuzzcost"
)

// FuzzProof shows that an accepted proof is always signed with the key in its own header. A seed
// from another process may contain a key that this process does not have.
func FuzzProof(f *testing.F) {
	w, h := newWorld(f), newHolder(f)
	for _, proof := range []string{
		h.proof(f, w.now),
		h.proof(f, w.now, "htu", "https://"+strings.Repeat("%25", 900)),
		"a.b.c",
		"",
		strings.Repeat(".", 4096),
		strings.Repeat("eyJ", 1300) + ".e30.AA",
		"eyJqd2siOnsia3R5IjoiUlNBIiwibiI6I" + strings.Repeat("A", 3000) + ".e30.AA",
	} {
		f.Add(proof)
	}

	bound := fuzzcost.Bound{
		CPU:        5 * time.Millisecond,
		CPUPerByte: time.Microsecond,
		Heap:       256 << 10,
		PerByte:    128,
	}
	f.Fuzz(func(t *testing.T, proof string) {
		var got string
		var err error
		bound.Check(t, len(proof), func() {
			got, err = w.Verify(context.Background(), []string{proof}, use)
		})
		if err == nil && got != thumbprintIn(t, proof) {
			t.Errorf("%q is accepted for the key %q, which is not the key in its header", proof, got)
		}
	})
}

// thumbprintIn returns the thumbprint of the key in a proof's header.
func thumbprintIn(t *testing.T, proof string) string {
	t.Helper()
	algorithms := []jose.SignatureAlgorithm{jose.ES256, jose.EdDSA, jose.PS256, jose.RS256}
	parsed, err := jose.ParseSignedCompact(proof, algorithms)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := parsed.Signatures[0].Protected.JSONWebKey.Thumbprint(crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(sum)
}
