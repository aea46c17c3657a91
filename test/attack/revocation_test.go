package attack

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// TestT16Revoke shows that a client can revoke only its own tokens, and that revoking a refresh
// token ends its grant.
func TestT16Revoke(t *testing.T) {
	p := project(t)
	sub := p.NewSubscriber(t)
	for _, kind := range []string{"fabric", "jwt"} {
		t.Run(kind, func(t *testing.T) {
			c, other := p.NewClient(t, "web", "--access-token", kind), p.NewClient(t, "web")
			tokens, _ := c.SignIn(t, sub, loginScope)
			asks := func() harness.Answer { return p.Get(t, "/oauth/userinfo", harness.Bearer(tokens.AccessToken)) }

			// Another client or a caller without credentials cannot revoke the token. An altered
			// token does not revoke it either.
			other.Revoke(t, tokens.AccessToken).Want(t, 200, 400)
			other.Revoke(t, tokens.RefreshToken).Want(t, 200, 400)
			c.Refresh(t, tokens.RefreshToken).Want(t, 200).Read(t, &tokens)
			asks().Want(t, 200)
			for _, garbage := range []string{"garbage", "a.b.c", "a..b.c.d", tokens.AccessToken + "x"} {
				c.Revoke(t, garbage).Want(t, 200)
			}
			asks().Want(t, 200)
			p.Post(t, "/oauth/revoke", harness.Form(url.Values{"token": {tokens.AccessToken}})).Want(t, 400, 401)
			p.Post(t, "/oauth/revoke", harness.Form(url.Values{"token": {tokens.AccessToken}}),
				harness.Basic(c.ID, "wrong")).Want(t, 401)
			asks().Want(t, 200)

			// Revoking an access token does not end the grant.
			c.Revoke(t, tokens.AccessToken).Want(t, 200)
			harness.WithinASecond(t, "a revoked access token", func() error { return asks().StatusIs(401) })
			c.Refresh(t, tokens.RefreshToken).Want(t, 200).Read(t, &tokens) // another access token of the same grant
			asks().Want(t, 200)

			// Revoking the refresh token ends the grant.
			c.Revoke(t, tokens.RefreshToken).Want(t, 200)
			c.Refresh(t, tokens.RefreshToken).WantError(t, 400, "invalid_grant")
			harness.WithinASecond(t, "an access token of a revoked grant", func() error {
				return asks().StatusIs(401)
			})
		})
	}
}

// TestT16RevokeRotated shows that the owner of a stolen refresh token can end the grant by revoking
// that token, even if the thief has refreshed twice since.
func TestT16RevokeRotated(t *testing.T) {
	p := project(t)
	c := p.NewClient(t, "web")
	owner, _ := c.SignIn(t, p.NewSubscriber(t), loginScope)
	var thief harness.Tokens
	c.Refresh(t, owner.RefreshToken).Want(t, 200).Read(t, &thief)
	c.Refresh(t, thief.RefreshToken).Want(t, 200).Read(t, &thief)

	c.Revoke(t, owner.RefreshToken).Want(t, 200)
	c.Refresh(t, thief.RefreshToken).WantError(t, 400, "invalid_grant")
	harness.WithinASecond(t, "the thief's access token", func() error {
		return p.Get(t, "/oauth/userinfo", harness.Bearer(thief.AccessToken)).StatusIs(401)
	})
}

// TestT17Introspect shows that introspection describes tokens only to authenticated clients of the
// same project.
func TestT17Introspect(t *testing.T) {
	p := project(t)
	sub := p.NewSubscriber(t)
	inactive := func(a harness.Answer) error {
		if o := a.Object(t); len(o) != 1 || o["active"] != false {
			return fmt.Errorf("introspection returned %v, want {active: false}", o)
		}
		return nil
	}

	for _, kind := range []string{"fabric", "jwt"} {
		t.Run(kind, func(t *testing.T) {
			c := p.NewClient(t, "web", "--access-token", kind)
			tokens, _ := c.SignIn(t, sub, loginScope)
			if o := c.Introspect(t, tokens.AccessToken).Want(t, 200).Object(t); o["active"] != true ||
				o["sub"] != sub.ID {
				t.Errorf("introspection of a valid token returned %v, want active: true and the subscriber",
					o)
			}

			p.Post(t, "/oauth/introspect", harness.Form(url.Values{"token": {tokens.AccessToken}})).Want(t, 400, 401)
			p.Post(t, "/oauth/introspect", harness.Form(url.Values{"token": {tokens.AccessToken}}),
				harness.Basic(c.ID, "wrong")).WantError(t, 401, "invalid_client")
			public := p.NewClient(t, "spa")
			p.Post(t, "/oauth/introspect",
				harness.Form(url.Values{"token": {tokens.AccessToken}, "client_id": {public.ID}})).Want(t, 400, 401)

			// A client of another project learns nothing about any token.
			stranger := project(t).NewClient(t, "service")
			for _, token := range []string{tokens.AccessToken, tokens.RefreshToken, tokens.IDToken, "garbage", ""} {
				a := stranger.Introspect(t, token)
				if token == "" {
					a.Want(t, 200, 400)
					continue
				}
				if err := inactive(a.Want(t, 200)); err != nil {
					t.Error(err)
				}
			}
			if err := inactive(c.Introspect(t, tokens.IDToken).Want(t, 200)); err != nil {
				t.Errorf("an ID token: %v", err)
			}
		})
	}

	c := p.NewClient(t, "web")
	tokens, _ := c.SignIn(t, sub, loginScope)
	p.Do(t, "DELETE", "/api/fabric/resources/subscribers/"+sub.ID, p.Basic()).Want(t, 204)
	harness.WithinASecond(t, "a deleted subscriber's token", func() error {
		return inactive(c.Introspect(t, tokens.AccessToken))
	})
}
