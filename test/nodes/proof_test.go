package nodes

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/selvage/selvage/test/harness"
)

// A holder makes DPoP proofs for requests to the issuer (RFC 9449).
type holder struct {
	testing.TB
	issuer string
	key    *ecdsa.PrivateKey
}

func newHolder(t testing.TB, issuer string) holder {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return holder{t, strings.TrimSuffix(issuer, "/"), key}
}

// proof returns the header with a proof for a request, with an access token unless token is "".
// nonce may be "".
func (h holder) proof(method, path, token, nonce string) harness.Option {
	h.Helper()
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
		h.Fatal(err)
	}
	raw, err := json.Marshal(claims)
	if err != nil {
		h.Fatal(err)
	}
	jws, err := signer.Sign(raw)
	if err != nil {
		h.Fatal(err)
	}
	text, err := jws.CompactSerialize()
	if err != nil {
		h.Fatal(err)
	}
	return harness.Header("DPoP", text)
}

// TestProofElsewhere uses DPoP proofs at both nodes. A proof that one node has accepted is refused by
// the other, and each accepts the nonces of the other.
func TestProofElsewhere(t *testing.T) {
	n := two(t)
	p := n.NewProject(t)
	c := p.NewClient(t, "service", "--scope", "Voice", "--dpop-bound-access-tokens")
	h, thief := newHolder(t, p.Issuer()), newHolder(t, p.Issuer())
	here, there := n.Each[0], n.Each[1]

	const endpoint, api = "/oauth/token", "/api/fabric/resources/subscribers"
	ask := func(node *harness.Server, proof harness.Option) harness.Answer {
		form := url.Values{"grant_type": {"client_credentials"}, "scope": {"Voice"}}
		return node.Post(t, endpoint, append(c.Authenticated(form), proof)...)
	}
	read := func(node *harness.Server, token string, proof harness.Option) harness.Answer {
		return node.Get(t, api, harness.Header("Authorization", "DPoP "+token), proof)
	}

	var tokens harness.Tokens
	used := h.proof("POST", endpoint, "", "")
	first := ask(here, used).Want(t, 200)
	first.Read(t, &tokens)
	ask(there, used).WantError(t, 400, "invalid_dpop_proof")
	ask(there, h.proof("POST", endpoint, "", first.Header.Get("DPoP-Nonce"))).Want(t, 200)
	for _, node := range n.Each {
		ask(node, h.proof("POST", endpoint, "", "made-up")).WantError(t, 400, "use_dpop_nonce")
	}

	used = h.proof("GET", api, tokens.AccessToken, "")
	read(there, tokens.AccessToken, used).Want(t, 200)
	for _, node := range n.Each {
		read(node, tokens.AccessToken, used).Want(t, 401)
		read(node, tokens.AccessToken, thief.proof("GET", api, tokens.AccessToken, "")).Want(t, 401)
		read(node, tokens.AccessToken, h.proof("GET", api, tokens.AccessToken, "made-up")).Want(t, 401)
		node.Get(t, api, harness.Bearer(tokens.AccessToken)).Want(t, 401)
		read(node, tokens.AccessToken, h.proof("GET", api, tokens.AccessToken, "")).Want(t, 200)
	}
}
