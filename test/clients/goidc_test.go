package clients

import (
	"context"
	"crypto/rand"
	"testing"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/selvage/selvage/test/harness"
)

// TestGoOIDC shows that go-oidc and x/oauth2 can sign a subscriber in. These libraries require that
// the issuer matches exactly, and verify ID tokens with the published keys.
func TestGoOIDC(t *testing.T) {
	harness.OneBackend(t)
	p := harness.Shared(t).NewProject(t)
	sub := p.NewSubscriber(t)
	for _, alg := range []string{oidc.RS256, oidc.ES256} {
		for _, method := range []string{"client_secret_basic", "client_secret_post"} {
			t.Run(alg+", "+method, func(t *testing.T) {
				signInWithGoOIDC(t, p.NewClient(t, "web", "--id-token-alg", alg, "--auth-method", method), sub, alg)
			})
		}
	}
}

func signInWithGoOIDC(t *testing.T, c *harness.Client, sub harness.Subscriber, alg string) {
	ctx := t.Context()
	provider, err := oidc.NewProvider(ctx, c.Issuer())
	if err != nil {
		t.Fatalf("NewProvider(%q): %v", c.Issuer(), err)
	}

	config := oauth2.Config{ // x/oauth2 finds out which authentication method works
		ClientID: c.ID, ClientSecret: c.Secret, Endpoint: provider.Endpoint(), RedirectURL: c.Redirect,
		Scopes: []string{oidc.ScopeOpenID, "profile", "email", oidc.ScopeOfflineAccess},
	}

	verifier, nonce, state := oauth2.GenerateVerifier(), rand.Text(), rand.Text()
	answer := c.Browser().SignIn(t, config.AuthCodeURL(
		state, oauth2.S256ChallengeOption(verifier), oidc.Nonce(nonce)), sub)
	if got := answer.Get("iss"); got != c.Issuer() {
		t.Errorf("iss = %q, want %q", got, c.Issuer())
	}
	if got := answer.Get("state"); got != state {
		t.Errorf("state = %q, want %q", got, state)
	}

	token, err := config.Exchange(ctx, answer.Get("code"), oauth2.VerifierOption(verifier))
	if err != nil {
		t.Fatalf("Exchange: %v", err)
	}

	raw, _ := token.Extra("id_token").(string)
	id, err := provider.Verifier(&oidc.Config{ClientID: c.ID, SupportedSigningAlgs: []string{alg}}).Verify(ctx, raw)
	if err != nil {
		t.Fatalf("Verify(%q): %v", raw, err)
	}
	if id.Nonce != nonce || id.Subject != sub.ID {
		t.Errorf("the ID token has nonce %q and subject %q, want %q and %q", id.Nonce, id.Subject, nonce, sub.ID)
	}
	if id.AccessTokenHash != "" {
		if err := id.VerifyAccessToken(token.AccessToken); err != nil {
			t.Errorf("VerifyAccessToken: %v", err)
		}
	}

	checkUserInfo(ctx, t, provider, config.TokenSource(ctx, token), sub)
}

func checkUserInfo(
	ctx context.Context, t *testing.T, provider *oidc.Provider, tokens oauth2.TokenSource, sub harness.Subscriber,
) {
	t.Helper()
	info, err := provider.UserInfo(ctx, tokens)
	if err != nil {
		t.Fatalf("UserInfo: %v", err)
	}

	var claims struct {
		FamilyName string `json:"family_name"`
	}
	if err := info.Claims(&claims); err != nil {
		t.Fatalf("Claims: %v", err)
	}

	if info.Subject != sub.ID || info.Email != sub.Email || claims.FamilyName != "Lovelace" {
		t.Errorf("UserInfo = %q, %q, %q, want %q, %q, Lovelace", info.Subject, info.Email, claims.FamilyName,
			sub.ID, sub.Email)
	}
}
