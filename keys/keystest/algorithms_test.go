package keystest

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/selvage/selvage/keys"
)

func TestAlgorithms(t *testing.T) {
	r := openRing(t, openStore(t))
	var set jose.JSONWebKeySet
	check(t, json.Unmarshal(r.JWKS().Body, &set))

	for _, alg := range []keys.Use{keys.RS256, keys.ES256, keys.PS256, keys.EdDSA} {
		token, err := r.Sign(alg, "JWT", claims{"alice"})
		check(t, err)
		jws, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.SignatureAlgorithm(alg)})
		check(t, err)
		if _, err := jws.Verify(set); err != nil {
			t.Errorf("a verifier with the JWKS refuses %s: %v", alg, err)
		}
		if _, ok := r.VerifyJWS(token, "JWT"); !ok {
			t.Errorf("the ring refuses its own %s", alg)
		}

		published := set.Key(jws.Signatures[0].Protected.KeyID)
		if len(published) != 1 || published[0].Algorithm != string(alg) {
			t.Errorf("the tokens for %s are signed with %v, want one published key for this algorithm", alg, published)
		}

		for _, other := range keys.Algorithms() { // a key is used with only one algorithm
			renamed := base64.RawURLEncoding.EncodeToString(
				[]byte(`{"alg":"` + string(other) + `","kid":"` +
					jws.Signatures[0].Protected.KeyID + `","typ":"JWT"}`))
			if _, ok := r.VerifyJWS(renamed+token[strings.Index(token, "."):], "JWT"); ok && other != alg {
				t.Errorf("a signature with %s verifies as %s", alg, other)
			}
		}
	}
}

// TestSalt shows that the salt in PS256 signatures is as long as the hash, which RFC 7518, section
// 3.5 requires.
func TestSalt(t *testing.T) {
	r := openRing(t, openStore(t))
	token, err := r.Sign(keys.PS256, "JWT", claims{"alice"})
	check(t, err)
	jws, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.PS256})
	check(t, err)
	var set jose.JSONWebKeySet
	check(t, json.Unmarshal(r.JWKS().Body, &set))
	key := set.Key(jws.Signatures[0].Protected.KeyID)[0].Key.(*rsa.PublicKey)
	sum := sha256.Sum256([]byte(token[:strings.LastIndex(token, ".")]))
	if err := rsa.VerifyPSS(key, crypto.SHA256, sum[:], jws.Signatures[0].Signature,
		&rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash}); err != nil {
		t.Errorf("verifying the salt of a PS256 signature: %v", err)
	}
}

// TestSignUnique shows that SignUnique derives the nonce of ES256 from key and message (RFC 6979),
// and that Sign uses randomness.
func TestSignUnique(t *testing.T) {
	r := openRing(t, openStore(t))
	for _, tt := range []struct {
		name string
		sign func(alg keys.Use, typ string, claims any) (string, error)
		same bool
	}{
		{"Sign", r.Sign, false},
		{"SignUnique", r.SignUnique, true},
	} {
		one, err := tt.sign(keys.ES256, "JWT", claims{"alice"})
		check(t, err)
		another, err := tt.sign(keys.ES256, "JWT", claims{"alice"})
		check(t, err)
		if (one == another) != tt.same {
			t.Errorf("two calls of %s with the same claims returned %s and %s, want the same only for SignUnique",
				tt.name, one, another)
		}
	}

	for _, alg := range keys.Algorithms() {
		token, err := r.SignUnique(alg, "JWT", claims{"alice"})
		check(t, err)
		if _, ok := r.VerifyJWS(token, "JWT"); !ok {
			t.Errorf("the ring refuses its own %s", alg)
		}
	}
}

// TestNewAlgorithms shows that if a ring comes from a version with fewer algorithms, opening it
// adds the missing keys.
func TestNewAlgorithms(t *testing.T) {
	newer, older := openStore(t), openStore(t)
	openRing(t, newer)
	records, err := newer.RingKeys(t.Context())
	check(t, err)
	had := make(map[string]keys.Use)
	for _, rec := range records {
		if rec.Use == keys.RS256 || rec.Use == keys.ES256 || rec.Use == keys.Seal {
			check(t, older.ChangeRing(t.Context(), nil, []keys.Record{rec}))
			had[rec.Kid] = rec.Use
		}
	}

	r := openRing(t, older)
	for _, alg := range keys.Algorithms() {
		if _, err := r.Sign(alg, "JWT", claims{"alice"}); err != nil {
			t.Errorf("the ring has no key for %s: %v", alg, err)
		}
	}

	records, err = older.RingKeys(t.Context())
	check(t, err)
	for _, rec := range records {
		if delete(had, rec.Kid); rec.State != keys.Current && rec.State != keys.Next {
			t.Errorf("the key %s is %s, want current or next", rec.Kid, rec.State)
		}
	}
	if len(had) > 0 || len(records) != 2*len(keys.Uses()) {
		t.Errorf("the earlier keys %v are missing, or not each use has a current and a next key: %d keys", had,
			len(records))
	}
}

// TestHalfHash shows that HalfHash uses the hash function of each algorithm (OpenID Connect Core,
// section 3.1.3.6; Ed25519 uses SHA-512: RFC 8032, section 5.1).
func TestHalfHash(t *testing.T) {
	const token = "jHkWEdUXMU1BwAsC4vtUsZwnNvTIxEl0z9K3vx5KF0Y" // from OpenID Connect Core, appendix A.3
	for alg, want := range map[keys.Use]string{
		keys.RS256: "77QmUPtjPfzWtF2AnpK9RQ",
		keys.PS256: "77QmUPtjPfzWtF2AnpK9RQ",
		keys.EdDSA: "q7nS86GgvvFaZkzALLWqJYaJIKw2wCDAVfCAsm5CrBM",
	} {
		if got := alg.HalfHash(token); got != want {
			t.Errorf("HalfHash for %s = %q, want %q", alg, got, want)
		}
	}
}
