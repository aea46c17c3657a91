package clients

import (
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// TestOAuth4WebAPI shows that oauth4webapi, which openid-client and Auth.js build on, accepts every
// response.
func TestOAuth4WebAPI(t *testing.T) {
	harness.OneBackend(t)
	p := harness.Shared(t).NewProject(t)
	sub := p.NewSubscriber(t)
	for _, alg := range []string{"RS256", "ES256", "PS256", "EdDSA"} {
		t.Run(alg, func(t *testing.T) {
			method := map[string]string{"RS256": "none", "ES256": "client_secret_post"}[alg]
			if method == "" {
				method = "client_secret_basic"
			}
			runWithClient(t, "oauth4webapi.mjs", p.NewClient(t, "web", "--id-token-alg", alg, "--auth-method",
				method, "--access-token", "jwt"), sub, map[string]string{"alg": alg})
		})
	}
}

// TestPassport shows that passport-openidconnect, which does not support PKCE, can sign a subscriber
// in.
func TestPassport(t *testing.T) {
	harness.OneBackend(t)
	p := harness.Shared(t).NewProject(t)
	c := p.NewClient(t, "web", "--auth-method", "client_secret_post", "--pkce", "optional", "--access-token", "jwt")
	runWithClient(t, "passport.mjs", c, p.NewSubscriber(t), nil)
}

// TestAppAuthJS shows that AppAuth for JavaScript can sign a subscriber in.
func TestAppAuthJS(t *testing.T) {
	harness.OneBackend(t)
	p := harness.Shared(t).NewProject(t)
	c := p.NewClient(t, "native", "--redirect-uri", "http://127.0.0.1:8000", "--access-token", "jwt")
	runWithClient(t, "appauth.mjs", c, p.NewSubscriber(t), nil)
}

// runWithClient runs a script that signs a subscriber in.
func runWithClient(t *testing.T, script string, c *harness.Client, sub harness.Subscriber, more map[string]string) {
	t.Helper()
	b := c.Browser()
	settings := map[string]string{
		"issuer":        c.Issuer(),
		"client_id":     c.ID,
		"client_secret": c.Secret,
		"method":        c.AuthMethod,
		"redirect_uri":  c.Redirect,
		"sub":           sub.ID,
		"email":         sub.Email,
	}
	for name, value := range more {
		settings[name] = value
	}
	runNode(t, script, settings, func(url string) string { return c.Redirect + "?" + b.SignIn(t, url, sub).Encode() })
}
