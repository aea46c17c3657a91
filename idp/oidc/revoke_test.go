package oidc_test

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/audit"
	pages "github.com/selvage/selvage/internal/page"
)

// TestRevokeAndIntrospect shows who may introspect and revoke which tokens (RFC 7662, RFC
// 7009).
func TestRevokeAndIntrospect(t *testing.T) {
	w := newWorld(t)
	for _, format := range []idp.TokenFormat{idp.FabricToken, idp.JWTToken} {
		c, clientSecret := w.client(func(n *idp.Client) { n.Type, n.AccessToken = idp.Web, format })
		other, otherSecret := w.client(func(n *idp.Client) { n.Type = idp.Web })
		owner, stranger := basic(c.ID, clientSecret), basic(other.ID, otherSecret)

		code := w.newBrowser().code(c, "scope", "openid offline_access")
		redeemed := with(redemption(c, code), "client_id", "")
		tokens := w.post("/oauth/token", redeemed, "Authorization", owner).json(t)
		access, refresh := text(tokens["access_token"]), text(tokens["refresh_token"])

		introspect := func(client, token string) map[string]any {
			return w.post("/oauth/introspect", url.Values{"token": {token}}, "Authorization", client).json(t)
		}
		revoke := func(client, token string) {
			t.Helper()
			got := w.post("/oauth/revoke", url.Values{"token": {token}}, "Authorization", client)
			wantStatus(t, "a revocation", got, http.StatusOK)
		}

		// Only the client of a token may introspect it.
		claims := introspect(owner, access)
		for claim, want := range map[string]any{"active": true, "sub": w.ada.ID, "client_id": c.ID} {
			if claims[claim] != want {
				t.Errorf("%s: introspection has the %s %v, want %v", format, claim, claims[claim], want)
			}
		}
		if claims["sid"] == nil {
			t.Errorf("%s: introspection has no sid, want one", format)
		}
		inactive := map[string]any{"active": false}
		for name, got := range map[string]map[string]any{
			"another client": introspect(stranger, access),
			"garbage":        introspect(owner, "x"),
			"an ID token":    introspect(owner, text(tokens["id_token"])),
		} {
			if !maps.Equal(got, inactive) {
				t.Errorf("%s: introspection of %s is %v, want %v", format, name, got, inactive)
			}
		}

		// Other clients cannot revoke the tokens, but get the same response as for unknown tokens.
		revoke(stranger, access)
		revoke(stranger, refresh)
		revoke(owner, "garbage")
		if active := introspect(owner, access)["active"]; active != true {
			t.Errorf("%s: after another client's revocation, active is %v, want true", format, active)
		}

		revoke(owner, access)
		if active := introspect(owner, access)["active"]; active != false {
			t.Errorf("%s: after the revocation, active is %v, want false", format, active)
		}

		// The audit trail of the project shows the revocation.
		filter := audit.Filter{ProjectID: w.project.ID, Action: "token.revoked"}
		events, err := w.rows.ListAudit(t.Context(), filter, pages.Query{Size: 100})
		must(t, err)
		if !slices.ContainsFunc(events.Items, func(e audit.Event) bool { return e.Target.ID == claims["jti"] }) {
			t.Errorf("%s: the audit trail of the project has %+v, want the revocation of %v",
				format, events.Items, claims["jti"])
		}

		revoke(owner, refresh)
		form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {refresh}}
		got := w.post("/oauth/token", form, "Authorization", owner)
		wantError(t, "a refresh with a revoked token", got, "invalid_grant")
	}
}

// TestRevokeWithoutStore shows that a revocation is not acknowledged if it cannot be written.
func TestRevokeWithoutStore(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	set := w.tokens(c)
	must(t, w.rows.Close())
	got := w.post("/oauth/revoke", url.Values{"token": {text(set["access_token"])}, "client_id": {c.ID}})
	if got.status < 500 {
		t.Errorf("a revocation without a store = %d %s, want a server error", got.status, got.body)
	}
}

// TestSubscriberEnds shows that disabling or deleting a subscriber, or setting a new password, ends
// the subscriber's tokens and logins.
func TestSubscriberEnds(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	change := func(id string, in fabric.SubscriberInput) error {
		_, err := w.fabric.Subscribers.Update(t.Context(), w.project.ID, id, in)
		return err
	}

	for name, end := range map[string]func(id string) error{
		"disabled": func(id string) error {
			return change(id, fabric.SubscriberInput{Disabled: new(true)})
		},
		"a new password": func(id string) error {
			return change(id, fabric.SubscriberInput{Password: new("another password")})
		},
		"deleted": func(id string) error {
			return w.fabric.Subscribers.Delete(t.Context(), w.project.ID, id)
		},
	} {
		sub := w.subscriber(strings.ReplaceAll(name, " ", "") + "@example.com")
		b := w.newBrowser()
		tokens := w.redeem(c, b.logIn(b.authorize(request(c)), sub.Email, secret).param("code")).json(t)
		must(t, end(sub.ID))

		info := w.userinfo(text(tokens["access_token"]))
		wantStatus(t, name+": the access token", info, http.StatusUnauthorized)
		refreshed := w.refresh(c, text(tokens["refresh_token"]))
		wantError(t, name+": the refresh token", refreshed, "invalid_grant")

		w.pass(0) // the provider learns of the revocation
		wantStatus(t, name+": the login in the browser", b.authorize(request(c)), http.StatusOK)
	}
}
