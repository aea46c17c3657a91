package oidc_test

import (
	"crypto"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/problem"
)

// TestOperatorKeepsScopes shows that a client keeps the scopes that an operator gave it when it
// replaces its registration. It cannot give itself other scopes, or scopes that the operator
// removed.
func TestOperatorKeepsScopes(t *testing.T) {
	w := newWorld(t)
	created := w.registered(w.initialToken(), app(nil))
	must(t, w.idp.Clients.Change(t.Context(), text(created["client_id"]), func(c *idp.Client) {
		c.Scopes, c.RequireACR = append(c.Scopes, "Voice"), "2"
	}))
	for scope, want := range map[string][]string{"openid Voice": {"openid", "Voice"},
		"openid Voice Management": {"openid", "Voice"}, "openid": {"openid"}, "": {"openid", "Voice"},
		"openid profile email offline_access": {"openid"}} {
		must(t, w.idp.Clients.Change(t.Context(), text(created["client_id"]), func(c *idp.Client) {
			c.Scopes = []string{"openid", "Voice"}
		}))
		w.send("PUT", registerPath+"/"+text(created["client_id"]), text(created["registration_access_token"]),
			app(metadata{"client_id": created["client_id"], "scope": scope}))
		if c := w.clientOf(created); !slices.Equal(c.Scopes, want) || c.RequireACR != "2" {
			t.Errorf("after a replacement with %q: %q, acr %q, want %q and 2", scope, c.Scopes, c.RequireACR, want)
		}
	}
}

// TestDeleteRegistrationTogether shows that only one of several concurrent requests deletes a
// client. The others get the error for an invalid token.
func TestDeleteRegistrationTogether(t *testing.T) {
	w := newWorld(t)
	created := w.registered(w.initialToken(), app(nil))
	c, err := w.idp.Registrations.Authenticate(t.Context(), text(created["client_id"]),
		text(created["registration_access_token"]))
	must(t, err)

	var all sync.WaitGroup
	statuses := make([]int, 8)
	for i := range statuses {
		all.Go(func() {
			statuses[i] = w.send("DELETE", registerPath+"/"+c.ID, c.AccessToken, nil).status
		})
	}
	all.Wait()
	slices.Sort(statuses)
	if want := append([]int{204}, slices.Repeat([]int{401}, len(statuses)-1)...); !slices.Equal(statuses, want) {
		t.Errorf("concurrently deleting a client = %v, want %v", statuses, want)
	}

	// This also applies to requests that authenticated before the client was deleted.
	_, updateErr := w.idp.Registrations.Update(t.Context(), c, c.Registered(), "192.0.2.1")
	for name, err := range map[string]error{"deleting": w.idp.Registrations.Delete(t.Context(), c),
		"replacing": updateErr} {
		if p := problem.First(err); p == nil || p.Kind != problem.Unauthenticated {
			t.Errorf("%s a client that was just deleted: %v, want Unauthenticated", name, err)
		}
	}
}

// TestRegisterFAPI shows that a client can choose the profile fapi2 when it registers. It then
// completes a flow by the rules of the profile, and cannot change to another profile.
func TestRegisterFAPI(t *testing.T) {
	w := newWorld(t)
	p := party{w: w, kid: "k1", alg: jose.ES256, key: newKey(t, jose.ES256)}
	asked := app(metadata{"profile": "fapi2", "token_endpoint_auth_method": "private_key_jwt",
		"grant_types": []string{"authorization_code", "refresh_token"}, "scope": "openid offline_access",
		"jwks": keySet(t, "", map[string]crypto.Signer{p.kid: p.key})})
	initial := w.initialToken()
	created := w.registered(initial, asked)
	if created["profile"] != "fapi2" || created["id_token_signed_response_alg"] != "ES256" ||
		created["client_secret"] != nil {
		t.Fatalf("the client is %v, want fapi2 with ES256 and no secret", created)
	}

	p.c = w.clientOf(created)
	b := bank{p, w.holder()}
	if got := w.browser().authorize(request(b.c)); got.param("error") != "invalid_request" {
		t.Errorf("a request that is not pushed: %v, want invalid_request", got.parameters())
	}
	pushed := b.post(t, "/oauth/par", request(b.c, "scope", "openid offline_access")).json(t)
	br := w.browser()
	consent := br.logIn(br.authorize(reference(b.c, text(pushed["request_uri"]))), email, secret)
	code := br.consent(consent, "allow").param("code")
	if set := b.post(t, "/oauth/token", b.redemption(code)).json(t); set["token_type"] != "DPoP" {
		t.Errorf("the tokens are %v, want DPoP tokens", set)
	}

	for name, change := range map[string]metadata{
		"profile":                      {"profile": "default"},
		"token_endpoint_auth_method":   {"token_endpoint_auth_method": "client_secret_basic"},
		"id_token_signed_response_alg": {"id_token_signed_response_alg": "RS256"},
	} {
		put := metadata{"client_id": created["client_id"]}
		maps.Copy(put, asked)
		maps.Copy(put, change)
		got := w.send("PUT", registerPath+"/"+b.c.ID, text(created["registration_access_token"]), put)
		if got.status != 400 || !strings.Contains(got.body, name) {
			t.Errorf("replacing with %v = %d %s, want 400 that names the field", change, got.status, got.body)
		}
	}

	put := metadata{"client_id": created["client_id"]}
	maps.Copy(put, asked)
	delete(put, "profile")
	w.send("PUT", registerPath+"/"+b.c.ID, text(created["registration_access_token"]), put)
	if c := w.clientOf(created); c.Profile != idp.FAPI2 {
		t.Errorf("after a replacement without a profile, the client's profile is %s, want fapi2", c.Profile)
	}

	if got := w.send("POST", registerPath, initial, app(metadata{"profile": "mobile-legacy"})); got.status != 400 {
		t.Errorf("registering with the profile mobile-legacy = %d %s, want 400",
			got.status, got.body)
	}
}
