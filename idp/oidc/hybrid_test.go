package oidc_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/keys"
)

// withTypes returns a change that registers a client for response types.
func withTypes(types ...string) func(*idp.Client) {
	return func(n *idp.Client) { n.ResponseTypes = types }
}

// and returns a change that makes both changes.
func and(first, second func(*idp.Client)) func(*idp.Client) {
	return func(n *idp.Client) {
		first(n)
		second(n)
	}
}

// TestHybrid shows that the response of each type contains exactly the parts in the name of the type.
// The ID token contains the hashes of the other parts.
func TestHybrid(t *testing.T) {
	w := newWorld(t)
	for _, responseType := range []string{
		"id_token token", "code id_token", "code token", "code id_token token", "token id_token code",
	} {
		t.Run(responseType, func(t *testing.T) {
			c, _ := w.client(withTypes(responseType))
			b := w.newBrowser()
			page := b.authorize(request(c, "response_type", responseType, "nonce", "n",
				"scope", "openid profile offline_access"))
			got := b.logIn(page, email, secret)
			if got.location == nil || !strings.HasPrefix(got.location.String(), callback+"#") {
				t.Fatalf("status %d to %v, want the fragment of %s", got.status, got.location, callback)
			}

			parts := strings.Fields(responseType)
			code, token, idToken := got.param("code"), got.param("access_token"), got.param("id_token")
			wantPart(t, "code", code, slices.Contains(parts, "code"))
			wantPart(t, "access_token", token, slices.Contains(parts, "token"))
			wantPart(t, "id_token", idToken, slices.Contains(parts, "id_token"))

			if token != "" {
				wantParam(t, "the response", got, "token_type", "Bearer")
				wantParam(t, "the response", got, "expires_in", "600")
				wantParam(t, "the response", got, "scope", "openid profile")
			}
			if idToken != "" {
				want := map[string]any{"nonce": "n", "at_hash": nil, "c_hash": nil, "given_name": nil}
				if token != "" {
					want["at_hash"] = keys.RS256.HalfHash(token)
				}
				if code != "" {
					want["c_hash"] = keys.RS256.HalfHash(code)
				}
				wantMembers(t, "the ID token", payload(t, idToken), want)
			}
			if code != "" {
				tokens := w.redeem(c, code).json(t)
				wantMembers(t, "the ID token of the code", idClaims(t, tokens), map[string]any{"nonce": "n"})
				if tokens["refresh_token"] == nil {
					t.Errorf("the code was redeemed for %v, want a refresh token among them", tokens)
				}
			}
		})
	}
}

// wantPart checks that a response has a parameter, or that it has none if want is false.
func wantPart(t *testing.T, name, value string, want bool) {
	t.Helper()
	if got := value != ""; got != want {
		t.Errorf("the response has %s: %t, want %t; it is %q", name, got, want, value)
	}
}

// TestDirectToken shows that an access token in an authorization response works only at userinfo,
// even if the client's other tokens are fabric tokens. It ends with its login.
func TestDirectToken(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(withTypes("code token", "code"))
	b := w.newBrowser()
	got := b.logIn(b.authorize(request(c, "response_type", "code token", "scope", "openid email")), email, secret)
	token := got.param("access_token")

	info := w.userinfo(token)
	wantStatus(t, "userinfo", info, http.StatusOK)
	wantMembers(t, "userinfo", info.json(t), map[string]any{"email": email})
	if _, err := w.idp.Tokens.Open(t.Context(), token); err == nil {
		t.Error("the token gives access to other APIs")
	}
	claims := payload(t, token)
	wantMembers(t, "the token", claims, map[string]any{"aud": w.url + "/oauth/userinfo", "scope": "openid email"})

	tokens := w.redeem(c, got.param("code")).json(t)
	if _, err := w.idp.Tokens.Open(t.Context(), text(tokens["access_token"])); err != nil {
		t.Errorf("the token of the code: %v", err)
	}
	must(t, w.idp.Logins.End(t.Context(), text(claims["sid"])))
	wantStatus(t, "userinfo after the login has ended", w.userinfo(token), http.StatusUnauthorized)
}

// TestDirectTokenRevoked shows that a client can revoke an access token from an authorization
// response.
func TestDirectTokenRevoked(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(withTypes("id_token token"))
	b := w.newBrowser()
	got := b.logIn(b.authorize(implicit(c, "response_type", "id_token token")), email, secret)
	token := got.param("access_token")
	w.newBrowser().post("/oauth/revoke", url.Values{"client_id": {c.ID}, "token": {token}})
	wantStatus(t, "userinfo with a revoked token", w.userinfo(token), http.StatusUnauthorized)
}

// TestHybridErrors shows that requests without the parameters that a type needs are rejected. The
// error is sent in the fragment.
func TestHybridErrors(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(withTypes("code id_token", "code token", "id_token token"))

	for name, tt := range map[string]struct {
		params    url.Values
		wantError string
	}{
		"no nonce": {
			params:    request(c, "response_type", "code id_token", "nonce", ""),
			wantError: "invalid_request",
		},
		"no challenge": {
			params:    request(c, "response_type", "code token", "code_challenge", ""),
			wantError: "invalid_request",
		},
		"no openid": {
			params:    request(c, "response_type", "code token", "scope", "email"),
			wantError: "invalid_scope",
		},
		"in the query": {
			params:    request(c, "response_type", "id_token token", "response_mode", "query"),
			wantError: "invalid_request",
		},
		"not registered": {
			params:    request(c, "response_type", "code id_token token", "nonce", "n"),
			wantError: "unsupported_response_type",
		},
		"a token alone": {
			params:    request(c, "response_type", "token"),
			wantError: "unsupported_response_type",
		},
	} {
		got := w.newBrowser().authorize(tt.params)
		wantParam(t, name, got, "error", tt.wantError)
		for _, param := range []string{"code", "access_token", "id_token"} {
			wantParam(t, name, got, param, "")
		}
		if got.location == nil || got.location.Fragment == "" {
			t.Errorf("%s: status %d to %v, want a fragment", name, got.status, got.location)
		}
	}
}

// TestResponseTypes shows which response types a client may be registered for.
func TestResponseTypes(t *testing.T) {
	w := newWorld(t)
	register := func(change func(*idp.Client)) (idp.Client, error) {
		n := idp.Client{ProjectID: w.project.ID, Type: idp.SPA, RedirectURIs: []string{callback}}
		change(&n)
		created, _, err := w.idp.Clients.Create(t.Context(), n)
		return created, err
	}
	bound := func(n *idp.Client) { n.DPoPBound = true }
	withoutCode := func(n *idp.Client) { n.Grants = []string{"refresh_token"} }

	anyOrder, err := register(withTypes("token code id_token"))
	must(t, err)
	if anyOrder.ResponseTypes[0] != "code id_token token" {
		t.Errorf("a type in another order is registered as %q, want code id_token token", anyOrder.ResponseTypes)
	}
	if _, err := register(and(withTypes("code id_token"), bound)); err != nil {
		t.Errorf("a code and an ID token with bound tokens: %v, want success", err)
	}

	for name, change := range map[string]func(*idp.Client){
		"a token alone":      withTypes("token"),
		"none":               withTypes("none"),
		"a repeated value":   withTypes("code code"),
		"bound tokens":       and(withTypes("code token"), bound),
		"without code grant": and(withTypes("code token"), withoutCode),
	} {
		if _, err := register(change); err == nil {
			t.Errorf("%s: registered, want an error", name)
		}
	}
}
