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

// TestHybrid shows what the response of each type contains. It contains exactly the parts in the
// name of the type, and the hashes of values that come with the ID token.
func TestHybrid(t *testing.T) {
	w := newWorld(t)
	for _, kind := range []string{"id_token token", "code id_token", "code token", "code id_token token",
		"token id_token code"} {
		c, _ := w.client(withTypes(kind))
		b := w.browser()
		got := b.logIn(b.authorize(request(c, "response_type", kind, "nonce", "n", "scope",
			"openid profile offline_access")), email, secret)
		if got.location == nil || !strings.HasPrefix(got.location.String(), callback+"#") {
			t.Fatalf("%s: %d to %v, want a fragment", kind, got.status, got.location)
		}

		parts := strings.Fields(kind)
		has := func(part, param string) bool {
			if (got.param(param) != "") != slices.Contains(parts, part) {
				t.Errorf("%s: the response has %s = %q", kind, param, got.param(param))
			}
			return got.param(param) != ""
		}
		token, code := has("token", "access_token"), has("code", "code")
		if token && (got.param("token_type") != "Bearer" || got.param("expires_in") != "600" ||
			got.param("scope") != "openid profile") {
			t.Errorf("%s: the response is %v", kind, got.parameters())
		}

		if has("id_token", "id_token") {
			id := payload(t, got.param("id_token"))
			want := map[string]any{"nonce": "n", "at_hash": nil, "c_hash": nil, "given_name": nil}
			if token {
				want["at_hash"] = keys.RS256.HalfHash(got.param("access_token"))
			}
			if code {
				want["c_hash"] = keys.RS256.HalfHash(got.param("code"))
			}
			for name, value := range want {
				if id[name] != value {
					t.Errorf("%s: %s = %v in the ID token, want %v", kind, name, id[name], value)
				}
			}
		}

		if code {
			set := w.redeem(c, got.param("code")).json(t)
			if id := idClaims(t, set); id["nonce"] != "n" || set["refresh_token"] == nil {
				t.Errorf("%s: the code was redeemed for %v, want the nonce and a refresh token", kind, set)
			}
		}
	}
}

// TestDirectToken shows that an access token in an authorization response works only at userinfo,
// even if the client's other tokens are fabric tokens. It ends with its login.
func TestDirectToken(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(withTypes("code token", "code"))
	b := w.browser()
	got := b.logIn(b.authorize(request(c, "response_type", "code token", "scope", "openid email")), email, secret)
	token := got.param("access_token")

	if info := w.userinfo(token); info.status != http.StatusOK || info.json(t)["email"] != email {
		t.Errorf("userinfo = %d %s, want the email", info.status, info.body)
	}
	if _, err := w.idp.Tokens.Open(t.Context(), token); err == nil {
		t.Error("the token gives access to other APIs")
	}
	claims := payload(t, token)
	if claims["aud"] != w.url+"/oauth/userinfo" || claims["scope"] != "openid email" {
		t.Errorf("the token has %v, want it only for userinfo, with the scope openid email", claims)
	}

	set := w.redeem(c, got.param("code")).json(t)
	if _, err := w.idp.Tokens.Open(t.Context(), text(set["access_token"])); err != nil {
		t.Errorf("the token of the code: %v", err)
	}
	must(t, w.idp.Logins.End(t.Context(), text(claims["sid"])))
	if info := w.userinfo(token); info.status != http.StatusUnauthorized {
		t.Errorf("userinfo after the login has ended = %d, want 401", info.status)
	}
}

// TestDirectTokenRevoked shows that a client can revoke an access token from an authorization
// response.
func TestDirectTokenRevoked(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(withTypes("id_token token"))
	b := w.browser()
	got := b.logIn(b.authorize(implicit(c, "response_type", "id_token token")), email, secret)
	token := got.param("access_token")
	w.browser().post("/oauth/revoke", url.Values{"client_id": {c.ID}, "token": {token}})
	if info := w.userinfo(token); info.status != http.StatusUnauthorized {
		t.Errorf("userinfo with a revoked token = %d, want 401", info.status)
	}
}

// TestHybridErrors shows that requests without the parameters that a type needs are rejected. The
// error is sent in the fragment.
func TestHybridErrors(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(withTypes("code id_token", "code token", "id_token token"))
	for name, tt := range map[string]struct {
		pairs []string
		want  string
	}{
		"no nonce":     {[]string{"response_type", "code id_token", "nonce", ""}, "invalid_request"},
		"no challenge": {[]string{"response_type", "code token", "code_challenge", ""}, "invalid_request"},
		"no openid":    {[]string{"response_type", "code token", "scope", "email"}, "invalid_scope"},
		"in the query": {[]string{"response_type", "id_token token", "response_mode", "query"}, "invalid_request"},
		"not registered": {[]string{"response_type", "code id_token token", "nonce", "n"},
			"unsupported_response_type"},
		"a token alone": {[]string{"response_type", "token"}, "unsupported_response_type"},
	} {
		got := w.browser().authorize(request(c, tt.pairs...))
		if got.location == nil || got.location.Fragment == "" || got.param("error") != tt.want ||
			got.param("code")+got.param("access_token")+got.param("id_token") != "" {
			t.Errorf("%s: %d to %v, want %s in the fragment", name, got.status, got.location, tt.want)
		}
	}
}

// TestResponseTypes shows which response types a client may be registered for.
func TestResponseTypes(t *testing.T) {
	w := newWorld(t)
	base := idp.Client{ProjectID: w.project.ID, Type: idp.SPA, RedirectURIs: []string{callback}}

	for name, tt := range map[string]struct {
		change func(*idp.Client)
		ok     bool
	}{
		"in any order":   {withTypes("token code id_token"), true},
		"a token alone":  {withTypes("token"), false},
		"none":           {withTypes("none"), false},
		"twice the same": {withTypes("code code"), false},
		"bound tokens":   {and(withTypes("code token"), func(n *idp.Client) { n.DPoPBound = true }), false},
		"a code, bound":  {and(withTypes("code id_token"), func(n *idp.Client) { n.DPoPBound = true }), true},
		"without code grant": {and(withTypes("code token"),
			func(n *idp.Client) { n.Grants = []string{"refresh_token"} }), false},
	} {
		n := base
		tt.change(&n)
		made, _, err := w.idp.Clients.Create(t.Context(), n)
		if (err == nil) != tt.ok {
			t.Errorf("%s: %v", name, err)
		}
		if name == "in any order" && made.ResponseTypes[0] != "code id_token token" {
			t.Errorf("%s: registered for %q", name, made.ResponseTypes)
		}
	}
}
