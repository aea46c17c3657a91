package attack

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"maps"
	"path/filepath"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/keys"
	"github.com/selvage/selvage/store"
	"github.com/selvage/selvage/test/harness"
)

// ring opens the key ring of a running server, as an insider with access to its files could.
func ring(t *testing.T, s *harness.Server) *keys.Ring {
	t.Helper()
	rows, err := store.Open(t.Context(), store.Config{URL: s.Database(), Dir: s.Data})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rows.Close(); err != nil {
			t.Error(err)
		}
	})

	master, err := keys.ReadMaster(filepath.Join(s.Data, "master.key"))
	if err != nil {
		t.Fatal(err)
	}

	chains, err := audit.NewKey(master)
	if err != nil {
		t.Fatal(err)
	}

	rows.AuditBy(chains)
	r, err := keys.Open(t.Context(), keys.Config{Store: rows, Master: master})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// part returns v as a part of a JWT, in base64url. Values other than strings are first converted to
// JSON.
func part(v any) string {
	raw, ok := v.(string)
	if !ok {
		b, err := json.Marshal(v)
		if err != nil {
			panic(err) // the test's own value cannot be encoded
		}
		raw = string(b)
	}
	return base64.RawURLEncoding.EncodeToString([]byte(raw))
}

// unsigned returns a JWT whose algorithm is "none".
func unsigned(claims map[string]any) string {
	return part(map[string]string{"alg": "none", "typ": "JWT"}) + "." + part(claims) + "."
}

// claimsOf returns the claims of a JWT, without verifying its signature.
func claimsOf(t *testing.T, token string) map[string]any {
	t.Helper()
	jws, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.RS256, jose.ES256})
	if err != nil {
		t.Fatalf("%q: %v", token, err)
	}
	var claims map[string]any
	if err := json.Unmarshal(jws.UnsafePayloadWithoutVerification(), &claims); err != nil {
		t.Fatal(err)
	}
	return claims
}

// with returns a copy of claims in which the claim with this name has the given value. If value is
// nil, the copy does not have this claim.
func with(claims map[string]any, name string, value any) map[string]any {
	c := maps.Clone(claims)
	c[name] = value
	if value == nil {
		delete(c, name)
	}
	return c
}

// An attacker signs tokens with its own key.
type attacker struct{ key *ecdsa.PrivateKey }

func newAttacker(t *testing.T) attacker {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return attacker{key}
}

// sign returns claims signed by the attacker, with additional header members.
func (a attacker) sign(t *testing.T, header map[jose.HeaderKey]any, claims map[string]any) string {
	t.Helper()
	opts := &jose.SignerOptions{ExtraHeaders: map[jose.HeaderKey]any{"typ": "at+jwt"}}
	maps.Copy(opts.ExtraHeaders, header)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: a.key}, opts)
	if err != nil {
		t.Fatal(err)
	}
	return signed(t, signer, claims)
}

// signed returns claims as a JWT that signer signed.
func signed(t *testing.T, signer jose.Signer, claims map[string]any) string {
	t.Helper()
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	jws, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jws.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}
