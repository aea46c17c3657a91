package clients

import (
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/selvage/selvage/test/harness"
)

// TestOpenIDClient shows that openid-client v6, which is strict, can sign a subscriber in.
func TestOpenIDClient(t *testing.T) {
	harness.OneBackend(t)
	p := harness.Shared(t).NewProject(t)
	sub := p.NewSubscriber(t)
	tests := []struct {
		name, alg, method string
		client            *harness.Client
	}{
		{"public client, RS256", "RS256", "none", p.NewClient(t, "spa", "--access-token", "jwt")},
		{"client_secret_basic, ES256", "ES256", "client_secret_basic",
			p.NewClient(t, "web", "--id-token-alg", "ES256", "--access-token", "jwt")},
		{"client_secret_post, sealed access token", "RS256", "client_secret_post",
			p.NewClient(t, "web", "--auth-method", "client_secret_post", "--access-token", "fabric")},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := p.Browser()
			visit := func(url string) string { return tt.client.Redirect + "?" + b.SignIn(t, url, sub).Encode() }
			runNode(t, "openid-client.mjs", map[string]string{
				"issuer":        p.Issuer(),
				"client_id":     tt.client.ID,
				"client_secret": tt.client.Secret,
				"method":        tt.method,
				"alg":           tt.alg,
				"redirect_uri":  tt.client.Redirect,
				"sub":           sub.ID,
				"email":         sub.Email,
			}, visit)
		})
	}
}

// TestPushedRequests shows that openid-client can push and sign its requests, and verify signed
// responses.
func TestPushedRequests(t *testing.T) {
	harness.OneBackend(t)
	p := harness.Shared(t).NewProject(t)
	private, public := clientKey(t, jose.ES256)
	c := p.NewClient(t, "web", "--auth-method", "private_key_jwt", "--jwks", public, "--access-token", "jwt")
	sub, b := p.NewSubscriber(t), p.Browser()
	runNode(t, "pushed.mjs", map[string]string{
		"issuer":       p.Issuer(),
		"client_id":    c.ID,
		"method":       "private_key_jwt",
		"key":          private,
		"redirect_uri": c.Redirect,
		"sub":          sub.ID,
	}, func(url string) string { return c.Redirect + "?" + b.SignIn(t, url, sub).Encode() })
}

// TestDPoP shows that openid-client can bind fabric tokens to its key, as a public client and as a
// confidential one.
func TestDPoP(t *testing.T) {
	harness.OneBackend(t)
	p := harness.Shared(t).NewProject(t)
	sub := p.NewSubscriber(t)
	for _, c := range []*harness.Client{
		p.NewClient(t, "spa", "--access-token", "fabric"),
		p.NewClient(t, "web", "--access-token", "fabric", "--dpop-bound-access-tokens"),
	} {
		runWithClient(t, "dpop.mjs", c, sub, map[string]string{"api": p.HTTP + "/api/fabric/subscriber/info"})
	}
}

// TestFAPI shows that oauth4webapi and openid-client complete FAPI 2.0 with pushed requests and DPoP.
func TestFAPI(t *testing.T) {
	p := harness.Shared(t).NewProject(t)
	sub := p.NewSubscriber(t)
	private, public := clientKey(t, jose.ES256)
	settings := map[string]string{"key": private, "alg": "ES256", "api": p.HTTP + "/oauth/userinfo"}
	register := func(flags ...string) *harness.Client {
		return p.NewClient(t, "web", append([]string{"--profile", "fapi2", "--auth-method", "private_key_jwt",
			"--jwks", public, "--access-token", "jwt"}, flags...)...)
	}
	runWithClient(t, "fapi.mjs", register(), sub, settings)
	runWithClient(t, "dpop.mjs", register(), sub, settings)
}

// TestOpenIDClientCredentials shows that openid-client can get tokens for a service.
func TestOpenIDClientCredentials(t *testing.T) {
	harness.OneBackend(t)
	p := harness.Shared(t).NewProject(t)
	for _, method := range []string{"client_secret_basic", "client_secret_post"} {
		for _, kind := range []string{"fabric", "jwt"} {
			t.Run(method+", "+kind, func(t *testing.T) {
				c := p.NewClient(t, "service", "--auth-method", method, "--access-token", kind, "--scope", "Voice")
				runNode(t, "client-credentials.mjs", map[string]string{
					"issuer":        p.Issuer(),
					"client_id":     c.ID,
					"client_secret": c.Secret,
					"method":        method,
					"scope":         "Voice",
					"api":           p.HTTP + "/api/fabric/resources/subscribers",
				}, noVisit)
			})
		}
	}
}
