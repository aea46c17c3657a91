package faults

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/selvage/selvage/test/harness"
)

// A pusher is a client with the profile fapi2, which pushes authorization requests.
type pusher struct {
	*harness.Client
	signer jose.Signer
	holder harness.Holder
}

func newPusher(t *testing.T, p *harness.Project) pusher {
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
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key},
		(&jose.SignerOptions{}).WithHeader("kid", "k"))
	if err != nil {
		t.Fatal(err)
	}
	c := p.NewClient(t, "web", "--first-party", "--profile", "fapi2", "--auth-method", "private_key_jwt",
		"--jwks", file, "--access-token", "jwt")
	return pusher{Client: c, signer: signer, holder: harness.NewHolder(t, p.Issuer())}
}

// assertion returns a new assertion. Some clients omit the iat claim, so it is optional.
func (c pusher) assertion(t *testing.T, iat bool) string {
	t.Helper()
	claims := map[string]any{"iss": c.ID, "sub": c.ID, "aud": c.Issuer(), "jti": rand.Text(),
		"exp": time.Now().Add(5 * time.Minute).Unix()}
	if iat {
		claims["iat"] = time.Now().Unix()
	}
	raw, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	jws, err := c.signer.Sign(raw)
	if err != nil {
		t.Fatal(err)
	}
	text, err := jws.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// send posts a form with a client assertion and a DPoP proof.
func (c pusher) send(t *testing.T, path string, v url.Values, assertion string,
	proof harness.Option) harness.Answer {
	t.Helper()
	form := url.Values{"client_id": {c.ID}, "client_assertion": {assertion},
		"client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"}}
	for name, values := range v {
		form[name] = values
	}
	return c.Post(t, path, harness.Form(form), proof)
}

// TestKillAfterPush kills the server after a client has pushed an authorization request and a
// person has answered it in a browser. Afterwards, the assertion and the proof of the push are
// refused, and the request cannot be answered again. New assertions, proofs and requests are
// accepted immediately.
func TestKillAfterPush(t *testing.T) {
	t.Parallel()
	s := harness.StartConfig(t, harness.Config{})
	p := s.NewProject(t)
	c := newPusher(t, p)
	sub := p.NewSubscriber(t)
	const par, token = "/oauth/par", "/oauth/token"
	prove := func(path string) harness.Option { return c.holder.Proof("POST", path, "", "") }

	for _, iat := range []bool{true, false} {
		f := c.NewFlow("openid")
		assertion, proof := c.assertion(t, iat), prove(par)
		var pushed struct {
			URI string `json:"request_uri"`
		}
		c.send(t, par, f.Query, assertion, proof).Want(t, 201).Read(t, &pushed)
		f.Query = url.Values{"client_id": {c.ID}, "request_uri": {pushed.URI}}
		code := c.Browser().SignIn(t, f.URL(), sub).Get("code")
		s.Kill()
		wantWhole(t, s)
		s.Restart(t)

		c.send(t, par, f.Query, assertion, prove(par)).WantError(t, 401, "invalid_client")
		c.send(t, token, f.Form(code), assertion, prove(token)).WantError(t, 401, "invalid_client")
		again := c.NewFlow("openid")
		c.send(t, par, again.Query, c.assertion(t, iat), proof).WantError(t, 400, "invalid_dpop_proof")

		a := p.Get(t, "/login/oauth/authorize?"+f.Query.Encode())
		if a.Status != 400 && !strings.Contains(a.Header.Get("Location"), "error=invalid_request_uri") {
			t.Errorf("a request that was already answered returned %d and redirected to %q, want a refusal",
				a.Status, a.Header.Get("Location"))
		}
		c.send(t, token, f.Form(code), c.assertion(t, iat), prove(token)).Want(t, 200)
		c.send(t, par, again.Query, c.assertion(t, iat), prove(par)).Want(t, 201)
	}
}
