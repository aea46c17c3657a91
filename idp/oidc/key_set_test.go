package oidc_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/problem"
)

// TestKeySets shows which key sets a client may register.
func TestKeySets(t *testing.T) {
	w := newWorld(t)
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	must(t, err)
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	must(t, err)
	private, err := json.Marshal(jose.JSONWebKeySet{
		Keys: []jose.JSONWebKey{{Key: newKey(t, jose.ES256), KeyID: "k"}},
	})
	must(t, err)
	good := keySet(t, "", map[string]crypto.Signer{"k": newKey(t, jose.ES256)})

	many := map[string]crypto.Signer{}
	for range 33 {
		many[rand.Text()] = newKey(t, jose.EdDSA)
	}

	register := func(set json.RawMessage, method idp.AuthMethod) error {
		_, secret, err := w.idp.Clients.Create(t.Context(), idp.Client{
			ProjectID:  w.project.ID,
			Type:       idp.Service,
			AuthMethod: method,
			Metadata:   idp.Metadata{JWKS: set},
		})
		if secret != "" {
			t.Error("the client has keys, but also a secret")
		}
		return err
	}

	// Unsuitable sets are rejected.
	for name, set := range map[string]json.RawMessage{
		"no set":              nil,
		"no JWKS":             json.RawMessage(`{"kty":"EC"}`),
		"no JSON":             json.RawMessage(`keys`),
		"empty":               json.RawMessage(`{"keys":[]}`),
		"a private key":       private,
		"a symmetric key":     json.RawMessage(`{"keys":[{"kty":"oct","k":"AAAA","kid":"k"}]}`),
		"RSA of 1024 bits":    keySet(t, "", map[string]crypto.Signer{"k": weak}),
		"P-384":               keySet(t, "", map[string]crypto.Signer{"k": p384}),
		"too many keys":       keySet(t, "", many),
		"keys for encryption": json.RawMessage(strings.Replace(string(good), `"kid"`, `"use":"enc","kid"`, 1)),
	} {
		wantProblem(t, "registering "+name, register(set, idp.AuthPrivateKeyJWT), "jwks")
	}

	if err := register(good, idp.AuthPrivateKeyJWT); err != nil {
		t.Errorf("registering a valid set: %v", err)
	}
	if err := register(good, idp.AuthPost); problem.First(err) == nil {
		t.Error("a client with both keys and a secret was registered")
	}

	// Keys of unknown types are ignored, because a client may publish newer types.
	mixed := json.RawMessage(strings.Replace(string(good), `[`, `[{"kty":"AKP","alg":"ML-DSA-44","pub":"AAAA"},`, 1))
	if err := register(mixed, idp.AuthPrivateKeyJWT); err != nil {
		t.Errorf("registering a set with a key of an unknown type: %v", err)
	}
}

// TestKeyAlgorithm shows that a key registered for one algorithm does not verify signatures made with
// another algorithm, and that a removed key verifies nothing.
func TestKeyAlgorithm(t *testing.T) {
	w := newWorld(t)
	p := w.newParty(t, jose.RS256)
	p.c.JWKS = keySet(t, "PS256", map[string]crypto.Signer{p.kid: p.key})
	must(t, w.rewrite(p.c))

	wantInvalidClient(t, "RS256 with a key registered for PS256", p.ask(p.assertion(t)))
	p.alg = jose.PS256
	wantStatus(t, "PS256 with a key registered for PS256", p.ask(p.assertion(t)), http.StatusOK)

	fresh := newKey(t, jose.RS256)
	p.c.JWKS = keySet(t, "", map[string]crypto.Signer{"k2": fresh})
	must(t, w.rewrite(p.c))
	wantInvalidClient(t, "a key that was removed", p.ask(p.assertion(t)))
	p.kid, p.key = "k2", fresh
	wantStatus(t, "the replacement of the first key", p.ask(p.assertion(t)), http.StatusOK)
}
