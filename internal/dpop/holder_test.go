package dpop_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/selvage/selvage/internal/dpop"
)

// A holder is a client with a key.
type holder struct {
	key crypto.Signer
	alg jose.SignatureAlgorithm
}

func newHolder(t testing.TB) holder {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return holder{key, jose.ES256}
}

func (h holder) thumbprint(t testing.TB) string {
	t.Helper()
	sum, err := (&jose.JSONWebKey{Key: h.key.Public()}).Thumbprint(crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(sum)
}

// proof returns a proof for a GET of path with token. It is valid unless pairs change it: alternating
// names and values of claims. A name that begins with a colon is that of a header. A nil value removes the
// claim or header.
func (h holder) proof(t testing.TB, now time.Time, pairs ...any) string {
	t.Helper()
	claims := map[string]any{
		"jti": rand.Text(),
		"htm": "GET",
		"htu": "https://id.example" + path,
		"iat": now.Unix(),
		"ath": dpop.Hash(token),
	}
	headers := map[jose.HeaderKey]any{
		"typ": "dpop+jwt",
		"jwk": jose.JSONWebKey{Key: h.key.Public()},
	}
	for i := 0; i < len(pairs); i += 2 {
		value := pairs[i+1]
		name, isHeader := strings.CutPrefix(pairs[i].(string), ":")
		switch {
		case isHeader && value == nil:
			delete(headers, jose.HeaderKey(name))
		case isHeader:
			headers[jose.HeaderKey(name)] = value
		case value == nil:
			delete(claims, name)
		default:
			claims[name] = value
		}
	}

	key := jose.SigningKey{Algorithm: h.alg, Key: h.key}
	signer, err := jose.NewSigner(key, &jose.SignerOptions{ExtraHeaders: headers})
	if err != nil {
		t.Fatal(err)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	jws, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}

	text, err := jws.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}
