package keystest

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/json"
	"slices"
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
			t.Errorf("a verifier with the JWKS refuses an %s token: %v", alg, err)
		}
		if _, ok := r.VerifyJWS(token, "JWT"); !ok {
			t.Errorf("the ring refuses its own %s token", alg)
		}

		keyID := jws.Signatures[0].Protected.KeyID
		used := set.Key(keyID)
		if len(used) != 1 {
			t.Fatalf("the JWKS has %d keys with the kid of an %s token, want 1", len(used), alg)
		}
		if used[0].Algorithm != string(alg) {
			t.Errorf("the key of an %s token is published for %s", alg, used[0].Algorithm)
		}

		for _, other := range keys.Algorithms() { // a key is used with only one algorithm
			if other == alg {
				continue
			}
			renamed := rehead(t, token, map[string]any{"alg": other, "kid": keyID, "typ": "JWT"})
			if _, ok := r.VerifyJWS(renamed, "JWT"); ok {
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
	signature := jws.Signatures[0]
	key := set.Key(signature.Protected.KeyID)[0].Key.(*rsa.PublicKey)
	sum := sha256.Sum256([]byte(token[:strings.LastIndex(token, ".")]))
	opts := &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash}
	if err := rsa.VerifyPSS(key, crypto.SHA256, sum[:], signature.Signature, opts); err != nil {
		t.Errorf("verifying the salt of a PS256 signature: %v", err)
	}
}

// TestSignUnique shows that SignUnique derives the nonce of ES256 from key and message (RFC 6979),
// and that Sign uses randomness.
func TestSignUnique(t *testing.T) {
	r := openRing(t, openStore(t))
	random1, err := r.Sign(keys.ES256, "JWT", claims{"alice"})
	check(t, err)
	random2, err := r.Sign(keys.ES256, "JWT", claims{"alice"})
	check(t, err)
	if random1 == random2 {
		t.Errorf("Sign returned %s twice, want two tokens", random1)
	}
	unique1, err := r.SignUnique(keys.ES256, "JWT", claims{"alice"})
	check(t, err)
	unique2, err := r.SignUnique(keys.ES256, "JWT", claims{"alice"})
	check(t, err)
	if unique1 != unique2 {
		t.Errorf("SignUnique returned %s and %s, want the same token twice", unique1, unique2)
	}

	for _, alg := range keys.Algorithms() {
		token, err := r.SignUnique(alg, "JWT", claims{"alice"})
		check(t, err)
		if _, ok := r.VerifyJWS(token, "JWT"); !ok {
			t.Errorf("the ring refuses its own %s token", alg)
		}
	}
}

// TestNewAlgorithms shows that if a ring comes from a version with fewer algorithms, opening it
// adds the missing keys.
func TestNewAlgorithms(t *testing.T) {
	newer, older := openStore(t), openStore(t)
	openRing(t, newer)
	var kids []string
	for _, rec := range records(t, newer) {
		if rec.Use == keys.RS256 || rec.Use == keys.ES256 || rec.Use == keys.Seal {
			check(t, older.ChangeRing(t.Context(), nil, []keys.Record{rec}))
			kids = append(kids, rec.Kid)
		}
	}

	r := openRing(t, older)
	for _, alg := range keys.Algorithms() {
		if _, err := r.Sign(alg, "JWT", claims{"alice"}); err != nil {
			t.Errorf("the ring has no key for %s: %v", alg, err)
		}
	}

	stored := records(t, older)
	if want := 2 * len(keys.Uses()); len(stored) != want { // current and next keys
		t.Errorf("there are %d keys, want %d", len(stored), want)
	}
	for _, rec := range stored {
		if rec.State != keys.Current && rec.State != keys.Next {
			t.Errorf("the key %s is %s, want current or next", rec.Kid, rec.State)
		}
	}
	for _, earlier := range kids {
		if !slices.ContainsFunc(stored, func(rec keys.Record) bool { return rec.Kid == earlier }) {
			t.Errorf("the earlier key %s is missing", earlier)
		}
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
