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
	c, _ := w.client(nil)
	first := text(w.tokens(c)["refresh_token"])

	nodes := []*idp.Provider{w.idp, w.second()}
	var mu sync.Mutex
	var refreshes sync.WaitGroup
	given := make(map[string]int) // by new refresh token
	for i := range 50 {
		refreshes.Go(func() {
			set, err := nodes[i%2].Grants.Refresh(t.Context(), c, idp.Refreshing{Token: first})
			if err != nil {
				t.Errorf("a concurrent refresh failed: %v", err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			given[set.RefreshToken]++
		})
	}
	refreshes.Wait()
	if len(given) != 1 {
		t.Fatalf("50 uses of one refresh token returned %d new tokens, want one: %v", len(given), given)
	}

	for next := range given {
		if next == first {
			t.Error("the new refresh token is the old one")
		}
		wantStatus(t, "the new refresh token", w.refresh(c, next), http.StatusOK)
	}
}

// TestRefreshGrace shows that a used refresh token returns its successor again for ten seconds, as
// long as the successor has not been used. Later uses end the grant.
func TestRefreshGrace(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	stranger, _ := w.client(nil)
	other := w.second()

	// forge replaces the secret in a refresh token.
	forge := func(token string) string { return token[:len(token)-52] + strings.Repeat("A", 52) }

	for name, tt := range map[string]struct {
		again     func(node *idp.Provider, used, next string) error // uses the old token again
		wantEnded bool                                              // whether this ends the grant
	}{
		"immediately": {
			again: func(node *idp.Provider, used, next string) error {
				return w.wantRefresh(node, c, used, next)
			},
		},
		"after 2 seconds": {
			again: func(node *idp.Provider, used, next string) error {
				w.pass(2 * time.Second)
				return w.wantRefresh(node, c, used, next)
			},
		},
		"after 2 seconds and 8 more, since a use does not extend the period": {
			again: func(node *idp.Provider, used, next string) error {
				w.pass(2 * time.Second)
				err := w.wantRefresh(node, c, used, next)
				w.pass(8 * time.Second)
				return errors.Join(err, w.wantRefused(node, c, used))
			},
			wantEnded: true,
		},
		"after 10 seconds": {
			again: func(node *idp.Provider, used, _ string) error {
				w.pass(10 * time.Second)
				return w.wantRefused(node, c, used)
			},
			wantEnded: true,
		},
		"by another client": {
			again: func(node *idp.Provider, used, _ string) error {
				return w.wantRefused(node, stranger, used)
			},
		},
		"for more than was granted": {
			again: func(node *idp.Provider, used, _ string) error {
				wider := idp.Refreshing{Token: used, Scope: "openid email"}
				if _, err := node.Grants.Refresh(t.Context(), c, wider); err == nil {
					return errors.New("a wider scope is granted")
				}
				return nil
			},
		},
		"with a different secret": {
			again: func(node *idp.Provider, used, _ string) error {
				return w.wantRefused(node, c, forge(used))
			},
			wantEnded: true,
		},
		"to revoke it": {
			again: func(node *idp.Provider, used, _ string) error {
				return node.Grants.RevokeToken(t.Context(), c, used)
			},
			wantEnded: true,
		},
		"to revoke it after the period": {
			again: func(node *idp.Provider, used, _ string) error {
				w.pass(10 * time.Second)
				return node.Grants.RevokeToken(t.Context(), c, used)
			},
			wantEnded: true,
		},
		"to revoke it, with a different secret": {
			again: func(node *idp.Provider, used, _ string) error {
				return node.Grants.RevokeToken(t.Context(), c, forge(used))
			},
			wantEnded: true,
		},
		"to revoke it, by another client": {
			again: func(node *idp.Provider, used, _ string) error {
				return node.Grants.RevokeToken(t.Context(), stranger, used)
			},
		},
	} {
		for place, node := range map[string]*idp.Provider{"the same node": w.idp, "another node": other} {
			used := text(w.tokens(c)["refresh_token"])
			next := text(w.refresh(c, used).json(t)["refresh_token"])
			if err := tt.again(node, used, next); err != nil {
				t.Errorf("a refresh with a used token %s, at %s: %v", name, place, err)
			}

			want := http.StatusOK
			if tt.wantEnded {
				want = http.StatusBadRequest
			}
			wantStatus(t, "the newest token after its predecessor was used "+name+" at "+place,
				w.refresh(c, next), want)
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
	wantError(t, "the predecessor of a revoked token", w.refresh(c, used), "invalid_grant")
}

// wantRefresh refreshes token on a node. It returns an error unless the new refresh token is want.
func (w *world) wantRefresh(node *idp.Provider, c idp.Client, token, want string) error {
	set, err := node.Grants.Refresh(context.Background(), c, idp.Refreshing{Token: token})
	if err != nil {
		return fmt.Errorf("the refresh failed: %w", err)
	}
	if set.RefreshToken != want {
		return fmt.Errorf("the refresh returned the refresh token %q, want %q", set.RefreshToken, want)
	}
	return nil
}

// wantRefused refreshes token on a node. It returns an error unless the refresh fails.
func (w *world) wantRefused(node *idp.Provider, c idp.Client, token string) error {
	if _, err := node.Grants.Refresh(context.Background(), c, idp.Refreshing{Token: token}); err == nil {
		return errors.New("the refresh succeeded, want an error")
	}
	return nil
}

// TestRefresh shows what a refresh may request and what it returns. Using a token again ends the
// grant.
func TestRefresh(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	other, _ := w.client(nil)
	first := w.tokens(c, "scope", "openid email", "nonce", "n1")
	old := text(first["refresh_token"])

	// A wrong client or scope is refused.
	wantError(t, "a refresh by another client", w.refresh(c, old, "client_id", other.ID), "invalid_grant")
	wantError(t, "a refresh with a wider scope", w.refresh(c, old, "scope", "openid profile"), "invalid_scope")

	// The scope may be narrowed. The ID token still describes the same login (OpenID Connect Core,
	// section 12.2).
	second := w.refresh(c, old, "scope", "openid").json(t)
	if second["scope"] != "openid" {
		t.Fatalf("the refresh returned the scope %v, want openid", second["scope"])
	}
	if second["refresh_token"] == old || second["refresh_token"] == nil {
		t.Fatalf("the refresh returned the refresh token %v, want a new one", second["refresh_token"])
	}
	before, after := idClaims(t, first), idClaims(t, second)
	wantMembers(t, "the ID token after the refresh", after, map[string]any{
		"sub":       before["sub"],
		"auth_time": before["auth_time"],
		"azp":       before["azp"],
		"sid":       before["sid"],
		"nonce":     nil,
	})

	third := w.refresh(c, text(second["refresh_token"])).json(t)
	if third["scope"] != "openid email" {
		t.Errorf("a refresh without a scope, after one with a narrower scope, returned %v, want the granted scope",
			third)
	}

	// A token from two generations ago ends the grant.
	wantError(t, "a refresh with an old token", w.refresh(c, old), "invalid_grant")
	newest := w.refresh(c, text(third["refresh_token"]))
	wantError(t, "a refresh with the newest token after that", newest, "invalid_grant")
	info := w.userinfo(text(third["access_token"]))
	wantStatus(t, "userinfo with the newest access token after that", info, http.StatusUnauthorized)

	for name, token := range map[string]string{
		"no token":         "",
		"garbage":          "x",
		"a long token":     strings.Repeat("x", 10_000),
		"an unknown token": "AAAAAAAAAAAAAAAAAAAAAA." + strings.Repeat("A", 52),
	} {
		wantStatus(t, name, w.refresh(c, token), http.StatusBadRequest)
	}
}

// TestEndedUnheard shows that grants and codes end with their subscriber, even on a node that has
// not received the revocation yet.
func TestEndedUnheard(t *testing.T) {
	for name, end := range map[string]func(w *world, r revocation.Revocation) error{
		"disabled": func(w *world, r revocation.Revocation) error {
			change := fabric.SubscriberChange{Disabled: new(true)}
			_, err := w.rows.UpdateSubscriber(t.Context(), w.project.ID, w.ada.ID, change, w.now(), &r)
			return err
		},
		"deleted": func(w *world, r revocation.Revocation) error {
			return w.rows.DeleteSubscriber(t.Context(), w.project.ID, r)
		},
	} {
		w := newWorld(t)
		c, _ := w.client(nil)
		b := w.newBrowser()
		code := b.code(c)
		refresh := text(w.redeem(c, b.code(c)).json(t)["refresh_token"])
		must(t, end(w, revocation.Revocation{
			Kind:    revocation.Subscriber,
			ID:      w.ada.ID,
			Until:   w.now(),
			Expires: w.now().Add(time.Hour),
		}))

		wantError(t, "a refresh for a subscriber just "+name, w.refresh(c, refresh), "invalid_grant")
		wantError(t, "the code of a subscriber just "+name, w.redeem(c, code), "invalid_grant")
	}
}

// TestRefreshExpires shows that a grant ends after 180 days, or after 30 days without use.
func TestRefreshExpires(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	token := text(w.tokens(c)["refresh_token"])

	for range 6 {
		w.pass(29 * 24 * time.Hour)
		got := w.refresh(c, token)
		wantStatus(t, "a refresh within 30 days", got, http.StatusOK)
		token = text(got.json(t)["refresh_token"])
	}
	w.pass(7 * 24 * time.Hour) // 181 days
	wantError(t, "a refresh after 181 days", w.refresh(c, token), "invalid_grant")

	token = text(w.tokens(c)["refresh_token"])
	w.pass(31 * 24 * time.Hour)
	wantError(t, "a refresh after 31 idle days", w.refresh(c, token), "invalid_grant")
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
		wantError(t, "an invented token", w.refresh(c, token), "invalid_grant")
	}
	valid := w.refresh(c, text(set["refresh_token"]))
	wantStatus(t, "the valid token afterwards", valid, http.StatusOK)
}
