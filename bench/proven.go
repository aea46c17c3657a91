package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/selvage/selvage/test/harness"
)

// A bank is a client with the profile fapi2. One key signs its assertions, and another key signs
// its DPoP proofs.
type bank struct {
	*harness.Client
	signer jose.Signer
	holder harness.Holder
}

// newBank registers a bank.
func (w *world) newBank(p *harness.Program) bank {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		p.Fatalf("%v", err)
	}
	jwk := jose.JSONWebKey{Key: crypto.Signer(key), KeyID: "bank", Algorithm: "ES256"}
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{jwk.Public()}})
	if err != nil {
		p.Fatalf("%v", err)
	}
	file := filepath.Join(p.TempDir(), "bank.json")
	if err := os.WriteFile(file, set, 0o600); err != nil {
		p.Fatalf("%v", err)
	}

	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jwk}, nil)
	if err != nil {
		p.Fatalf("%v", err)
	}
	c := w.NewClient(p, "web", "--first-party", "--profile", "fapi2", "--auth-method", "private_key_jwt",
		"--jwks", file, "--id-token-alg", "ES256", "--access-token", "jwt")
	return bank{Client: c, signer: signer, holder: harness.NewHolder(p, w.Issuer())}
}

// proofHeader returns the header with a DPoP proof.
func (b bank) proofHeader(method, path, token string) string {
	req := http.Request{Header: http.Header{}}
	b.holder.Proof(method, path, token, "")(&req)
	return "DPoP: " + req.Header.Get("DPoP")
}

// send posts a form with a DPoP proof and a client assertion.
func (w *world) send(c *wire, b bank, path string, v url.Values) (answer, error) {
	now := time.Now().Unix()
	claims, err := json.Marshal(map[string]any{
		"iss": b.ID,
		"sub": b.ID,
		"aud": w.Issuer(),
		"jti": rand.Text(),
		"iat": now,
		"exp": now + 60,
	})
	if err != nil {
		return answer{}, err
	}

	jws, err := b.signer.Sign(claims)
	if err != nil {
		return answer{}, err
	}

	assertion, err := jws.CompactSerialize()
	if err != nil {
		return answer{}, err
	}

	v.Set("client_id", b.ID)
	v.Set("client_assertion", assertion)
	v.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
	return c.do(w.post(path, form, v.Encode(), b.proofHeader("POST", path, "")))
}

// provenFlow returns a task that runs a complete FAPI 2.0 flow with DPoP in a signed-in browser.
// The flow takes three requests: one pushes the authorization request, one gets the code, and one
// redeems it.
func (w *world) provenFlow(b bank) task {
	return func(c *wire) error {
		_, err := w.runFlow(c, b)
		return err
	}
}

// runFlow runs a FAPI 2.0 flow, and returns its tokens.
func (w *world) runFlow(c *wire, b bank) (tokens harness.Tokens, err error) {
	f := b.NewFlow(loginScope)
	a, err := w.send(c, b, "/oauth/par", f.Query)
	if err != nil {
		return tokens, err
	}
	var pushed struct {
		URI string `json:"request_uri"`
	}
	if err := a.want(201, `"request_uri"`); err != nil {
		return tokens, err
	}
	if err := json.Unmarshal(a.body, &pushed); err != nil {
		return tokens, err
	}

	query := url.Values{"client_id": {b.ID}, "request_uri": {pushed.URI}}
	if a, err = c.do(w.get("/login/oauth/authorize?"+query.Encode(), "Cookie: "+w.cookies)); err != nil {
		return tokens, err
	}

	code, err := codeOf(a, f)
	if err != nil {
		return tokens, err
	}

	if a, err = w.send(c, b, "/oauth/token", f.Form(code)); err != nil {
		return tokens, err
	}
	if err := a.want(200, `"token_type":"DPoP"`, `"id_token":"ey`); err != nil {
		return tokens, err
	}
	return tokens, json.Unmarshal(a.body, &tokens)
}

// provenUserinfo returns a task that calls the userinfo endpoint with a DPoP-bound token. Each call
// has a new proof.
func (w *world) provenUserinfo(b bank) task {
	var token string
	return func(c *wire) error {
		if token == "" {
			tokens, err := w.runFlow(c, b)
			if err != nil {
				return err
			}
			token = tokens.AccessToken
		}

		const path = "/oauth/userinfo"
		a, err := c.do(w.get(path, "Authorization: DPoP "+token, b.proofHeader("GET", path, token)))
		if err != nil {
			return err
		}
		return a.want(200, w.sub.ID)
	}
}
