package clients

import (
	"context"
	"crypto/rand"
	"testing"

	"github.com/zitadel/oidc/v3/pkg/client/rp"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"golang.org/x/oauth2"

	"github.com/selvage/selvage/test/harness"
)

// TestZitadelRP shows that an app that uses zitadel/oidc can redeem a code, get userinfo, and
// refresh and revoke tokens.
func TestZitadelRP(t *testing.T) {
	harness.OneBackend(t)
	p := harness.Shared(t).NewProject(t)
	sub := p.NewSubscriber(t)
	for alg, style := range map[string]oauth2.AuthStyle{"RS256": oauth2.AuthStyleInHeader,
		"ES256": oauth2.AuthStyleInParams} {
		t.Run(alg, func(t *testing.T) {
			method := map[oauth2.AuthStyle]string{oauth2.AuthStyleInHeader: "client_secret_basic",
				oauth2.AuthStyleInParams: "client_secret_post"}[style]
			signInWithZitadel(t, p.NewClient(
				t, "web", "--id-token-alg", alg, "--auth-method", method, "--access-token", "jwt"), sub, style)
		})
	}
}

func signInWithZitadel(t *testing.T, c *harness.Client, sub harness.Subscriber, style oauth2.AuthStyle) {
	ctx, nonce := t.Context(), rand.Text()
	scopes := []string{oidc.ScopeOpenID, oidc.ScopeEmail, oidc.ScopeOfflineAccess}
	party, err := rp.NewRelyingPartyOIDC(ctx, c.Issuer(), c.ID, c.Secret, c.Redirect, scopes,
		rp.WithAuthStyle(style), rp.WithSigningAlgsFromDiscovery(),
		rp.WithVerifierOpts(rp.WithNonce(func(ctx context.Context) string { return nonce })))
	if err != nil {
		t.Fatalf("NewRelyingPartyOIDC: %v", err)
	}

	verifier, state := oauth2.GenerateVerifier(), rand.Text()
	answer := c.Browser().SignIn(t, rp.AuthURL(
		state, party, rp.WithCodeChallenge(harness.Challenge(verifier)),
		rp.AuthURLOpt(rp.WithURLParam("nonce", nonce))), sub)
	if got := answer.Get("state"); got != state {
		t.Errorf("state = %q, want %q", got, state)
	}

	tokens, err := rp.CodeExchange[*oidc.IDTokenClaims](ctx, answer.Get("code"), party, rp.WithCodeVerifier(verifier))
	if err != nil {
		t.Fatalf("CodeExchange: %v", err)
	}
	if got := tokens.IDTokenClaims.Subject; got != sub.ID {
		t.Errorf("the ID token has subject %q, want %q", got, sub.ID)
	}

	info, err := rp.Userinfo[*oidc.UserInfo](ctx, tokens.AccessToken, tokens.TokenType, sub.ID, party)
	if err != nil || info.Email != sub.Email {
		t.Fatalf("Userinfo = %+v, %v, want %s", info, err, sub.Email)
	}

	nonce = "" // a refreshed ID token should have none (OpenID Connect Core, section 12.2)
	fresh, err := rp.RefreshTokens[*oidc.IDTokenClaims](ctx, party, tokens.RefreshToken, "", "")
	if err != nil || fresh.IDTokenClaims.Subject != sub.ID {
		t.Fatalf("RefreshTokens = %+v, %v, want subject %s", fresh, err, sub.ID)
	}

	if err := rp.RevokeToken(ctx, party, fresh.RefreshToken, "refresh_token"); err != nil {
		t.Errorf("RevokeToken: %v", err)
	}
	if _, err := rp.RefreshTokens[*oidc.IDTokenClaims](ctx, party, fresh.RefreshToken, "", ""); err == nil {
		t.Errorf("RefreshTokens returned new tokens for a revoked refresh token")
	}
}
