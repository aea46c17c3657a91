package clients

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/selvage/selvage/test/harness"
)

// TestDevice shows that openid-client can sign a device in (RFC 8628). A person enters the code in
// another browser, and allows or denies the sign-in.
func TestDevice(t *testing.T) {
	p := harness.Shared(t).NewProject(t)

	sub := p.NewSubscriber(t)
	c := p.NewClient(t, "native", "--grant", "device_code", "--grant", "refresh_token", "--access-token", "jwt")
	settings := map[string]string{
		"issuer":    p.Issuer(),
		"client_id": c.ID,
		"method":    "none",
		"sub":       sub.ID,
		"email":     sub.Email,
	}
	b := p.Browser()
	runNode(t, "device.mjs", settings, func(line string) string {
		// The code is empty if the URL contains it, and "deny" if the person must deny the sign-in.
		address, code, _ := strings.Cut(line, "#")
		page := b.Open(t, address)

		answer, done := "consent-allow", "device-done"
		if code == "deny" {
			answer, done, code = "consent-deny", "device-denied", ""
		}

		if page.Has("user-code") {
			fields := map[string]string{}
			if code != "" {
				fields["user-code"] = strings.ToLower(strings.ReplaceAll(code, "-", " ")) // as people type it
			}
			page = b.Submit(t, page, "device-submit", fields)
		}

		if page.Has("login-submit") {
			page = b.Submit(t, page, "login-submit",
				map[string]string{"username": sub.Email, "password": sub.Password})
		}

		if page = b.Submit(t, page, answer, nil); !page.Has(done) {
			t.Errorf("the page is %d %s, want one with #%s", page.Status, page.URL, done)
		}
		return address
	})
}

// TestPrivateKeyJWT shows that openid-client can authenticate with a private key (RFC 7523): as a
// service with each algorithm, and in a complete login.
func TestPrivateKeyJWT(t *testing.T) {
	harness.OneBackend(t)
	p := harness.Shared(t).NewProject(t)
	for _, alg := range []jose.SignatureAlgorithm{jose.RS256, jose.PS256, jose.ES256, jose.EdDSA} {
		t.Run(string(alg), func(t *testing.T) {
			private, public := clientKey(t, alg)
			c := p.NewClient(t, "service", "--auth-method", "private_key_jwt", "--jwks", public,
				"--access-token", "jwt", "--scope", "Voice")
			runNode(t, "client-credentials.mjs", map[string]string{
				"issuer":    p.Issuer(),
				"client_id": c.ID,
				"method":    "private_key_jwt",
				"key":       private,
				"scope":     "Voice",
				"api":       p.HTTP + "/api/fabric/resources/subscribers",
			}, noVisit)
		})
	}

	private, public := clientKey(t, jose.ES256)
	c := p.NewClient(t, "web", "--auth-method", "private_key_jwt", "--jwks", public, "--access-token", "jwt")
	sub, b := p.NewSubscriber(t), p.Browser()
	runNode(t, "openid-client.mjs", map[string]string{
		"issuer":       p.Issuer(),
		"client_id":    c.ID,
		"method":       "private_key_jwt",
		"key":          private,
		"alg":          "RS256",
		"redirect_uri": c.Redirect,
		"sub":          sub.ID,
		"email":        sub.Email,
	}, func(url string) string { return c.Redirect + "?" + b.SignIn(t, url, sub).Encode() })
}

// clientKey returns a private key as a JWK and the path of a JWKS with its public part.
func clientKey(t *testing.T, alg jose.SignatureAlgorithm) (private, public string) {
	t.Helper()
	var key crypto.Signer
	var err error
	switch alg {
	case jose.ES256:
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case jose.EdDSA:
		_, key, err = ed25519.GenerateKey(rand.Reader)
	default:
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	}
	if err != nil {
		t.Fatal(err)
	}

	jwk := jose.JSONWebKey{Key: key, KeyID: rand.Text(), Algorithm: string(alg), Use: "sig"}
	text, err := json.Marshal(jwk)
	if err != nil {
		t.Fatal(err)
	}
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{jwk.Public()}})
	if err != nil {
		t.Fatal(err)
	}

	public = filepath.Join(t.TempDir(), "jwks.json")
	if err := os.WriteFile(public, set, 0o600); err != nil {
		t.Fatal(err)
	}
	return string(text), public
}
