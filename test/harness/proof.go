package harness

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// A Holder has a key with which it creates DPoP proofs for requests to the issuer (RFC 9449).
type Holder struct {
	t      T
	issuer string
	key    *ecdsa.PrivateKey
}

// NewHolder returns a Holder with a new key.
func NewHolder(t T, issuer string) Holder {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatalf("creating the key of a holder: %v", err)
	}
	return Holder{t: t, issuer: strings.TrimSuffix(issuer, "/"), key: key}
}

// Proof returns the header with a proof for a request. If token is not "", the proof is bound to
// this access token. nonce may be "".
func (h Holder) Proof(method, path, token, nonce string) Option {
	h.t.Helper()
	claims := map[string]any{"jti": rand.Text(), "htm": method, "htu": h.issuer + path, "iat": time.Now().Unix()}
	if token != "" {
		sum := sha256.Sum256([]byte(token))
		claims["ath"] = base64.RawURLEncoding.EncodeToString(sum[:])
	}
	if nonce != "" {
		claims["nonce"] = nonce
	}

	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: h.key},
		(&jose.SignerOptions{EmbedJWK: true}).WithType("dpop+jwt"))
	if err != nil {
		h.t.Fatalf("creating a DPoP proof: %v", err)
	}

	raw, err := json.Marshal(claims)
	if err != nil {
		h.t.Fatalf("creating a DPoP proof: %v", err)
	}

	jws, err := signer.Sign(raw)
	if err != nil {
		h.t.Fatalf("creating a DPoP proof: %v", err)
	}

	text, err := jws.CompactSerialize()
	if err != nil {
		h.t.Fatalf("creating a DPoP proof: %v", err)
	}
	return Header("DPoP", text)
}
