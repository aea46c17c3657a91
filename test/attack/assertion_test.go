package attack

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/selvage/selvage/test/harness"
)

const assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

// A party is a client that authenticates with private_key_jwt (RFC 7523).
type party struct {
	*harness.Client
	key *ecdsa.PrivateKey
	set []byte
}

func newParty(t *testing.T) party {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: &key.PublicKey, KeyID: "k"}}})
	if err != nil {
		t.Fatal(err)
	}

	file := filepath.Join(t.TempDir(), "jwks.json")
	if err := os.WriteFile(file, set, 0o600); err != nil {
		t.Fatal(err)
	}
	return party{
		Client: project(t).NewClient(t, "service", "--auth-method", "private_key_jwt", "--jwks", file,
			"--scope", "Voice"),
		key: key,
		set: set,
	}
}

// assertion returns a signed assertion. Its claims are valid, unless change makes them invalid.
func (p party) assertion(
	t *testing.T, alg jose.SignatureAlgorithm, key any, change func(claims map[string]any),
) string {
	t.Helper()
	claims := map[string]any{
		"iss": p.ID,
		"sub": p.ID,
		"aud": p.Issuer(),
		"exp": time.Now().Add(time.Minute).Unix(),
		"jti": rand.Text(),
	}
	if change != nil {
		change(claims)
	}

	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key},
		(&jose.SignerOptions{}).WithHeader("kid", "k"))
	if err != nil {
		t.Fatal(err)
	}
	return signed(t, signer, claims)
}

func (p party) ask(t *testing.T, assertion string) harness.Answer {
	t.Helper()
	return p.Post(t, "/oauth/token", harness.Form(
		url.Values{
			"grant_type":            {"client_credentials"},
			"client_assertion":      {assertion},
			"client_assertion_type": {assertionType},
		}))
}

// TestT7523Assertions shows that assertions with the wrong key, algorithm or claims are refused.
func TestT7523Assertions(t *testing.T) {
	p := newParty(t)
	p.ask(t, p.assertion(t, jose.ES256, p.key, nil)).Want(t, 200)

	public, err := x509.MarshalPKIXPublicKey(&p.key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	other := newParty(t)

	none := func() string {
		part := func(v any) string {
			raw, _ := json.Marshal(v)
			return base64.RawURLEncoding.EncodeToString(raw)
		}
		return part(map[string]any{"alg": "none", "kid": "k"}) + "." +
			part(map[string]any{
				"iss": p.ID,
				"sub": p.ID,
				"aud": p.Issuer(),
				"exp": time.Now().Add(time.Minute).Unix(),
				"jti": rand.Text(),
			}) + "."
	}

	set := func(name string, value any) func(map[string]any) {
		return func(claims map[string]any) { claims[name] = value }
	}

	late, past := time.Now().Add(time.Hour), time.Now().Add(-time.Minute)
	for name, assertion := range map[string]string{
		"a different audience":      p.assertion(t, jose.ES256, p.key, set("aud", "https://elsewhere.example/")),
		"alg none":                  none(),
		"HS256 with the public key": p.assertion(t, jose.HS256, public, nil),
		"HS256 with the key set":    p.assertion(t, jose.HS256, p.set, nil),
		"another client's key":      p.assertion(t, jose.ES256, other.key, nil),

		"an exp too far ahead": p.assertion(t, jose.ES256, p.key, set("exp", late.Unix())),
		"an expired exp":       p.assertion(t, jose.ES256, p.key, set("exp", past.Unix())),
		"no exp": p.assertion(
			t, jose.ES256, p.key, func(claims map[string]any) { delete(claims, "exp") }),
		"no jti": p.assertion(
			t, jose.ES256, p.key, func(claims map[string]any) { delete(claims, "jti") }),
		"another client": p.assertion(t, jose.ES256, p.key, set("sub", other.ID)),
	} {
		t.Run(name, func(t *testing.T) { p.ask(t, assertion).WantError(t, 401, "invalid_client") })
	}
}

// TestT7523Replay shows that an assertion yields only one token, even if many requests present it,
// at the same time or later.
func TestT7523Replay(t *testing.T) {
	p := newParty(t)
	assertion := p.assertion(t, jose.ES256, p.key, nil)
	answers := make([]harness.Answer, 20)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() { answers[i] = p.ask(t, assertion) })
	}

	all.Wait()
	won := 0
	for _, a := range answers {
		if a.Status == 200 {
			won++
		} else {
			a.WantError(t, 401, "invalid_client")
		}
	}
	if won != 1 {
		t.Errorf("%d of %d requests got a token for one assertion, want 1", won, len(answers))
	}
	p.ask(t, assertion).WantError(t, 401, "invalid_client")
}
