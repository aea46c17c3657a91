package oidc_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/revocation"
)

// TestRefreshParallel shows that only one of several concurrent uses of a refresh token rotates it,
// on any node. All callers get the refresh token from this rotation.
func TestRefreshParallel(t *testing.T) {
	w := newWorld(t)
	other := w.second()
	c, _ := w.client(nil)
	first := text(w.tokens(c)["refresh_token"])

	var mu sync.Mutex
	var wg sync.WaitGroup
	given := make(map[string]int)
	for i := range 50 {
		wg.Go(func() {
			p := w.idp
			if i%2 == 1 {
				p = other
			}
			set, err := p.Grants.Refresh(t.Context(), c, idp.Refreshing{Token: first})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Errorf("a concurrent refresh failed: %v", err)
			}
			given[set.RefreshToken]++
		})
	}

	wg.Wait()
	if len(given) != 1 {
		t.Fatalf("50 uses of one refresh token returned %d new tokens, want one: %v", len(given), given)
	}

	// The new token works.
	for next := range given {
		if next == first || w.refresh(c, next).status != http.StatusOK {
			t.Error("the new refresh token is the old one, or is refused")
		}
	}
}

// TestRefreshGrace shows that a used refresh token returns its successor again for ten seconds, as
// long as the successor has not been used. Later uses end the grant.
func TestRefreshGrace(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	stranger, _ := w.client(nil)

	tests := []struct {
		name string
		// Each case uses the old token again, and then checks whether the grant is still valid.
		again func(p *idp.Provider, used, next string) error
		lives bool
	}{
		{"immediately", func(p *idp.Provider, used, next string) error {
			return w.wantRefresh(p, c, used, next)
		}, true},
		{"after 2 seconds", func(p *idp.Provider, used, next string) error {
			w.pass(2 * time.Second)
			return w.wantRefresh(p, c, used, next)
		}, true},
		{"after 2 seconds and 8 more, since a use does not extend the period",
			func(p *idp.Provider, used, next string) error {
				w.pass(2 * time.Second)
				err := w.wantRefresh(p, c, used, next)
				w.pass(8 * time.Second)
				return errors.Join(err, w.wantRefresh(p, c, used, ""))
			}, false},
		{"after 10 seconds", func(p *idp.Provider, used, _ string) error {
			w.pass(10 * time.Second)
			return w.wantRefresh(p, c, used, "")
		}, false},
		{"by another client", func(p *idp.Provider, used, _ string) error {
			return w.wantRefresh(p, stranger, used, "")
		}, true},
		{"for more than was granted", func(p *idp.Provider, used, _ string) error {
			old := idp.Refreshing{Token: used, Scope: "openid email"}
			if _, err := p.Grants.Refresh(t.Context(), c, old); err == nil {
				return errors.New("a wider scope is granted")
			}
			return nil
		}, true},
		{"with a different secret", func(p *idp.Provider, used, _ string) error {
			return w.wantRefresh(p, c, used[:len(used)-52]+strings.Repeat("A", 52), "")
		}, false},
		{"to revoke it", func(p *idp.Provider, used, _ string) error {
			return p.Grants.RevokeToken(t.Context(), c, used)
		}, false},
		{"to revoke it after the period", func(p *idp.Provider, used, _ string) error {
			w.pass(10 * time.Second)
			return p.Grants.RevokeToken(t.Context(), c, used)
		}, false},
		{"to revoke it, with a different secret", func(p *idp.Provider, used, _ string) error {
			return p.Grants.RevokeToken(t.Context(), c, used[:len(used)-52]+strings.Repeat("A", 52))
		}, false},
		{"to revoke it, by another client", func(p *idp.Provider, used, _ string) error {
			return p.Grants.RevokeToken(t.Context(), stranger, used)
		}, true},
	}

	for node, p := range map[string]*idp.Provider{"the same node": w.idp, "another node": w.second()} {
		for _, tt := range tests {
			used := text(w.tokens(c)["refresh_token"])
			next := text(w.refresh(c, used).json(t)["refresh_token"])
			if err := tt.again(p, used, next); err != nil {
				t.Errorf("a refresh with a used token %s, at %s: %v", tt.name, node, err)
			}

			if got := w.refresh(c, next); (got.status == http.StatusOK) != tt.lives {
				t.Errorf("the newest refresh token, after its predecessor was used %s at %s: %d %s", tt.name, node,
					got.status, got.body)
			}
		}
	}
}

// TestRefreshGraceRevoked shows that revoking a grant during the grace period also invalidates the
// previous token.
func TestRefreshGraceRevoked(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	used := text(w.tokens(c)["refresh_token"])
	next := text(w.refresh(c, used).json(t)["refresh_token"])
	must(t, w.idp.Grants.RevokeToken(t.Context(), c, next))
	if got := w.refresh(c, used); got.json(t)["error"] != "invalid_grant" {
		t.Errorf("a refresh with the predecessor of a revoked token = %d %s, want invalid_grant",
			got.status, got.body)
	}
}

// wantRefresh refreshes token on node p. It returns an error unless the new refresh token is want.
// If want is "", the refresh must be refused.
func (w *world) wantRefresh(p *idp.Provider, c idp.Client, token, want string) error {
	set, err := p.Grants.Refresh(context.Background(), c, idp.Refreshing{Token: token})
	if set.RefreshToken != want || (err == nil) != (want != "") {
		return fmt.Errorf("the refresh returned %q, %v, want %q", set.RefreshToken, err, want)
	}
	return nil
}

// TestRefresh shows what a refresh may request and what it returns. Using a token again ends the
// grant.
func TestRefresh(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	other, _ := w.client(nil)
	refresh := func(token string, pairs ...string) reply { return w.refresh(c, token, pairs...) }

	first := w.tokens(c, "scope", "openid email", "nonce", "n1")
	old := text(first["refresh_token"])

	// A wrong client or scope is refused.
	if got := refresh(old, "client_id", other.ID); got.json(t)["error"] != "invalid_grant" {
		t.Errorf("a refresh by another client = %d %s, want invalid_grant", got.status, got.body)
	}
	if got := refresh(old, "scope", "openid profile"); got.json(t)["error"] != "invalid_scope" {
		t.Errorf("a refresh with a wider scope = %d %s, want invalid_scope", got.status, got.body)
	}

	// The scope may be narrowed. The ID token still describes the same login (OpenID Connect Core,
	// section 12.2).
	second := refresh(old, "scope", "openid").json(t)
	if second["scope"] != "openid" || second["refresh_token"] == old || second["refresh_token"] == nil {
		t.Fatalf("the refresh returned %v, want the narrower scope and a new refresh token", second)
	}

	was, is := idClaims(t, first), idClaims(t, second)
	if is["sub"] != was["sub"] || is["auth_time"] != was["auth_time"] || is["azp"] != was["azp"] ||
		is["sid"] != was["sid"] || is["nonce"] != nil {
		t.Errorf("the ID token has %v after the refresh, and had %v before", is, was)
	}

	third := refresh(text(second["refresh_token"])).json(t)
	if third["scope"] != "openid email" {
		t.Errorf("a refresh without a scope, after one with a narrower scope, returned %v, want the granted scope",
			third)
	}

	// A token from two generations ago ends the grant.
	if got := refresh(old); got.json(t)["error"] != "invalid_grant" {
		t.Errorf("a refresh with an old token = %d %s, want invalid_grant", got.status, got.body)
	}
	if got := refresh(text(third["refresh_token"])); got.json(t)["error"] != "invalid_grant" {
		t.Errorf("a refresh with the newest token after that = %d %s, want invalid_grant", got.status, got.body)
	}
	if got := w.userinfo(text(third["access_token"])); got.status != http.StatusUnauthorized {
		t.Errorf("userinfo with the newest access token after that = %d, want 401", got.status)
	}

	for _, token := range []string{"", "x", strings.Repeat("x", 10_000),
		"AAAAAAAAAAAAAAAAAAAAAA." + strings.Repeat("A", 52)} {
		if got := refresh(token); got.status != http.StatusBadRequest {
			t.Errorf("a refresh with the token %.20q = %d, want 400", token, got.status)
		}
	}
}

// TestEndedUnheard shows that grants and codes end with their subscriber, even on a node that has
// not received the revocation yet.
func TestEndedUnheard(t *testing.T) {
	for name, end := range map[string]func(w *world, r revocation.Revocation) error{
		"disabled": func(w *world, r revocation.Revocation) error {
			disabled := true
			_, err := w.rows.UpdateSubscriber(t.Context(), w.project.ID, w.ada.ID,
				fabric.SubscriberChange{Disabled: &disabled}, w.now(), &r)
			return err
		},
		"deleted": func(w *world, r revocation.Revocation) error {
			return w.rows.DeleteSubscriber(t.Context(), w.project.ID, r)
		},
	} {

		w := newWorld(t)
		c, _ := w.client(nil)
		b := w.browser()
		code := b.code(c)
		refresh := text(w.redeem(c, b.code(c)).json(t)["refresh_token"])
		must(t, end(w, revocation.Revocation{Kind: revocation.Subscriber, ID: w.ada.ID, Until: w.now(),
			Expires: w.now().Add(time.Hour)}))

		if got := w.refresh(c, refresh); got.json(t)["error"] != "invalid_grant" {
			t.Errorf("a refresh for a subscriber just %s = %d %s, want invalid_grant", name, got.status, got.body)
		}
		if got := w.redeem(c, code); got.json(t)["error"] != "invalid_grant" {
			t.Errorf("redeeming the code of a subscriber just %s = %d %s, want invalid_grant",
				name, got.status, got.body)
		}
	}
}

// TestRefreshExpires shows that a grant ends after 180 days, or after 30 days without use.
func TestRefreshExpires(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	token := text(w.tokens(c)["refresh_token"])

	for range 6 {
		w.pass(29 * 24 * time.Hour)
		got := w.token("grant_type", "refresh_token", "client_id", c.ID, "refresh_token", token)
		if got.status != http.StatusOK {
			t.Fatalf("a refresh within 30 days: %d %s, want 200", got.status, got.body)
		}
		token = text(got.json(t)["refresh_token"])
	}

	w.pass(7 * 24 * time.Hour) // 181 days
	if got := w.token("grant_type", "refresh_token", "client_id", c.ID, "refresh_token",
		token); got.json(t)["error"] != "invalid_grant" {
		t.Errorf("a refresh after 181 days: %d %s, want invalid_grant", got.status, got.body)
	}

	token = text(w.tokens(c)["refresh_token"])
	w.pass(31 * 24 * time.Hour)
	if got := w.token("grant_type", "refresh_token", "client_id", c.ID, "refresh_token",
		token); got.json(t)["error"] != "invalid_grant" {
		t.Errorf("a refresh after 31 idle days: %d %s, want invalid_grant", got.status, got.body)
	}
}

// TestInventedRefreshToken shows that nobody can end a grant with a refresh token that was invented
// from a JWT access token. The access token does not contain the grant's ID.
func TestInventedRefreshToken(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(func(n *idp.Client) { n.AccessToken = idp.JWTToken })
	set := w.tokens(c, "scope", "openid offline_access")
	seen := text(payload(t, text(set["access_token"]))["grant_id"])

	invented := []string{seen + "." + strings.Repeat("A", 52)}
	if id, err := uuid.Parse(seen); err == nil {
		invented = append(invented, base64.RawURLEncoding.EncodeToString(id[:])+"."+strings.Repeat("A", 52))
	}

	for _, token := range invented {
		if got := w.token("grant_type", "refresh_token", "client_id", c.ID, "refresh_token",
			token); got.json(t)["error"] != "invalid_grant" {
			t.Errorf("a refresh with an invented token = %d %s, want invalid_grant", got.status, got.body)
		}
	}

	if got := w.token("grant_type", "refresh_token", "client_id", c.ID, "refresh_token",
		text(set["refresh_token"])); got.status != http.StatusOK {
		t.Errorf("a refresh with the valid token afterwards = %d %s, want 200", got.status, got.body)
	}
}
