package oidc_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/problem"
)

// TestConsentRevoked shows that revoking a consent ends all of the client's tokens and
// unredeemed codes, and that the client must ask again. Other clients are not affected.
func TestConsentRevoked(t *testing.T) {
	w := newWorld(t)
	for _, kind := range []idp.TokenFormat{idp.FabricToken, idp.JWTToken} {
		third := func(n *idp.Client) {
			n.FirstParty, n.AccessToken, n.ResponseTypes = false, kind, []string{"code", "id_token"}
		}
		c, _ := w.client(third)
		other, _ := w.client(third)

		b := w.browser()
		allow := func(c idp.Client) map[string]any {
			t.Helper()
			page := b.authorize(request(c, "scope", "openid offline_access"))
			if strings.Contains(page.body, `id="login-submit"`) {
				page = b.logIn(page, email, secret)
			}
			return w.redeem(c, b.consent(page, "allow").param("code")).json(t)
		}

		got, others := allow(c), allow(other)
		code := b.code(c)

		// Tokens, refresh tokens and codes of the client have ended.
		must(t, w.idp.Consents.Revoke(t.Context(), w.ada.ID, c.ID))
		if r := w.userinfo(text(got["access_token"])); r.status != http.StatusUnauthorized {
			t.Errorf("%s: userinfo after the consent was revoked: %d, want 401", kind, r.status)
		}
		if r := w.refresh(c, text(got["refresh_token"])); r.status != http.StatusBadRequest ||
			r.json(t)["error"] != "invalid_grant" {
			t.Errorf("%s: a refresh after the consent was revoked: %d %s, want invalid_grant", kind, r.status, r.body)
		}

		if r := w.redeem(c, code); r.status != http.StatusBadRequest || r.json(t)["error"] != "invalid_grant" {
			t.Errorf("%s: a code from before the consent was revoked: %d %s, want invalid_grant",
				kind, r.status, r.body)
		}

		// The client must ask for consent again, even for ID tokens.
		if r := b.authorize(request(c, "prompt", "none")); r.param("error") != "consent_required" {
			t.Errorf("%s: prompt=none after the consent was revoked: %v, want consent_required",
				kind, r.parameters())
		}
		if r := b.authorize(implicit(c, "prompt", "none")); r.param("error") != "consent_required" {
			t.Errorf("%s: an ID token after the consent was revoked: %v, want consent_required",
				kind, r.parameters())
		}

		// The other client is not affected.
		if r := w.userinfo(text(others["access_token"])); r.status != http.StatusOK {
			t.Errorf("%s: another client's token: %d, want 200", kind, r.status)
		}
		if r := w.refresh(other, text(others["refresh_token"])); r.status != http.StatusOK {
			t.Errorf("%s: another client's refresh: %d %s, want 200", kind, r.status, r.body)
		}

		// There is no consent to revoke until it is given again.
		if err := w.idp.Consents.Revoke(t.Context(), w.ada.ID, c.ID); !errors.Is(err, problem.NotFound) {
			t.Errorf("%s: revoking again: %v, want not found", kind, err)
		}
		if again := allow(c); w.userinfo(text(again["access_token"])).status != http.StatusOK {
			t.Errorf("%s: a token of the new consent is not accepted", kind)
		}
	}
}

// TestConsentOfFirstParty shows that first-party clients need no consent. Revoking their consent
// still ends their tokens.
func TestConsentOfFirstParty(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	got := w.tokens(c, "scope", "openid offline_access")
	must(t, w.idp.Consents.Revoke(t.Context(), w.ada.ID, c.ID))
	if r := w.refresh(c, text(got["refresh_token"])); r.json(t)["error"] != "invalid_grant" {
		t.Errorf("a refresh of a revoked grant: %d %s, want invalid_grant", r.status, r.body)
	}
	w.tokens(c)
}
