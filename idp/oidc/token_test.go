package oidc_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/revocation"
	"github.com/selvage/selvage/keys"
)

// TestTokens shows what the token endpoint issues, for each format of access tokens.
func TestTokens(t *testing.T) {
	w := newWorld(t)
	for _, tt := range []struct {
		format  idp.TokenFormat
		alg     keys.Use
		seconds float64
	}{{idp.FabricToken, keys.RS256, 7200}, {idp.JWTToken, keys.ES256, 900}} {
		c, _ := w.client(func(n *idp.Client) { n.AccessToken, n.IDTokenAlg = tt.format, tt.alg })

		got := w.tokens(c, "scope", "openid email profile offline_access", "nonce", "n1")
		if got["token_type"] != "Bearer" || got["expires_in"] != tt.seconds ||
			text(got["refresh_token"]) == "" || got["scope"] != "openid email profile offline_access" {
			t.Errorf("%s: token response %v", tt.format, got)
		}

		id := payload(t, w, text(got["id_token"]))
		for name, want := range map[string]any{"iss": w.url + "/", "sub": w.ada.ID, "aud": c.ID, "azp": c.ID,
			"nonce": "n1"} {
			if id[name] != want {
				t.Errorf("%s: ID token's %s = %v, want %v", tt.format, name, id[name], want)
			}
		}

		if _, ok := w.idp.Ring.VerifyJWS(text(got["id_token"]), "JWT"); !ok || id["sid"] == nil ||
			id["at_hash"] == nil || id["email"] != nil {
			t.Errorf("%s: ID token %v", tt.format, id)
		}

		info := w.userinfo(text(got["access_token"])).json(t)
		if info["sub"] != w.ada.ID || info["email"] != email || info["given_name"] != "Ada" {
			t.Errorf("%s: userinfo %v", tt.format, info)
		}

		access, err := w.idp.Tokens.Open(t.Context(), text(got["access_token"]))
		if err != nil || access.SessionID != id["sid"] || access.SubscriberID != w.ada.ID {
			t.Errorf("%s: access token %+v, %v", tt.format, access, err)
		}
	}
}

// payload returns the claims of a JWS.
func payload(t testing.TB, w *world, token string) map[string]any {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("not a JWS: %q", token)
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	must(t, err)
	return reply{body: string(raw)}.json(t)
}

// TestRedeemRefuses shows that an invalid redemption is refused without using up the code. It also
// shows which parameters may be omitted.
func TestRedeemRefuses(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	other, _ := w.client(nil)
	confidential, secret1 := w.client(func(n *idp.Client) {
		n.Type, n.PKCEOptional, n.AuthMethod = idp.Web, true, idp.AuthPost
	})

	tests := []struct {
		name  string
		pairs []string
	}{
		{"another client", []string{"client_id", other.ID}},
		{"another redirect_uri", []string{"redirect_uri", "https://app.example/other"}},
		{"redirect_uri in capitals", []string{"redirect_uri", strings.ToUpper(callback)}},
		{"no verifier", []string{"code_verifier", ""}},
		{"another verifier", []string{"code_verifier", strings.Repeat("a", 43)}},
		{"short verifier", []string{"code_verifier", verifier[:42]}},
		{"long verifier", []string{"code_verifier", strings.Repeat("a", 129)}},
		{"the challenge as verifier", []string{"code_verifier", challenge}},
		{"another code", []string{"code", "x"}},
		{"a huge code", []string{"code", strings.Repeat("x", 10_000)}},
	}

	for _, tt := range tests {
		code := w.browser().code(c)
		if got := w.redeem(c, code, tt.pairs...); got.status != http.StatusBadRequest ||
			got.json(t)["error"] != "invalid_grant" {
			t.Errorf("%s: %d %s, want invalid_grant", tt.name, got.status, got.body)
		}

		// The refused redemption has not used up the code.
		if tt.name == "another code" || tt.name == "a huge code" {
			continue
		}
		if got := w.redeem(c, code); got.status != http.StatusOK {
			t.Errorf("%s: the owner can no longer redeem the code: %d %s", tt.name, got.status, got.body)
		}
	}

	// If the request had no challenge, the redemption must have a redirect_uri and must not have a
	// verifier.
	code := w.browser().code(confidential, "code_challenge", "", "code_challenge_method", "")
	if got := w.redeem(confidential, code, "client_secret", secret1); got.json(t)["error"] != "invalid_grant" {
		t.Errorf("a verifier without a challenge: %d %s", got.status, got.body)
	}
	if got := w.redeem(confidential, code, "client_secret", secret1, "code_verifier", "", "redirect_uri",
		""); got.json(t)["error"] != "invalid_grant" {
		t.Errorf("neither PKCE nor redirect_uri: %d %s", got.status, got.body)
	}

	if got := w.redeem(confidential, code, "client_secret", secret1, "code_verifier", ""); got.status != http.StatusOK {
		t.Errorf("PKCE omitted where it is optional: %d %s", got.status, got.body)
	}

	code = w.browser().code(c)
	if got := w.redeem(c, code, "redirect_uri", ""); got.status != http.StatusOK {
		t.Errorf("redirect_uri omitted with PKCE: %d %s", got.status, got.body)
	}

	// A code is valid for a minute.
	code = w.browser().code(c)
	w.pass(61 * time.Second)
	if got := w.redeem(c, code); got.json(t)["error"] != "invalid_grant" {
		t.Errorf("a code 61 seconds old: %d %s", got.status, got.body)
	}
}

// TestCodeReplay shows that a second redemption of a code revokes the tokens of the first (RFC
// 6749, section 4.1.2).
func TestCodeReplay(t *testing.T) {
	w := newWorld(t)
	for _, format := range []idp.TokenFormat{idp.FabricToken, idp.JWTToken} {
		c, _ := w.client(func(n *idp.Client) { n.AccessToken = format })
		code := w.browser().code(c, "scope", "openid offline_access")
		first := w.redeem(c, code).json(t)

		if got := w.userinfo(text(first["access_token"])); got.status != http.StatusOK {
			t.Fatalf("%s: userinfo before the replay: %d", format, got.status)
		}
		if got := w.redeem(c, code); got.json(t)["error"] != "invalid_grant" {
			t.Errorf("%s: second redemption: %d %s", format, got.status, got.body)
		}

		if got := w.userinfo(text(first["access_token"])); got.status != http.StatusUnauthorized {
			t.Errorf("%s: the first access token after the replay: %d, want 401", format, got.status)
		}
		got := w.token("grant_type", "refresh_token", "client_id", c.ID, "refresh_token",
			text(first["refresh_token"]))
		if got.json(t)["error"] != "invalid_grant" {
			t.Errorf("%s: the first refresh token after the replay: %d %s", format, got.status, got.body)
		}
	}
}

// TestParallel shows that of concurrent redemptions of the same code, one succeeds.
func TestParallel(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	code := w.browser().code(c)

	count := func(do func() reply) (won int) {
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				got := do()
				mu.Lock()
				defer mu.Unlock()
				if got.status == http.StatusOK {
					won++
				}
			})
		}
		wg.Wait()
		return won
	}

	if won := count(func() reply { return w.redeem(c, code) }); won != 1 {
		t.Errorf("%d of 50 redemptions of one code succeeded, want 1", won)
	}
}

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
				t.Errorf("a concurrent refresh: %v", err)
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
		{"with another secret", func(p *idp.Provider, used, _ string) error {
			return w.wantRefresh(p, c, used[:len(used)-52]+strings.Repeat("A", 52), "")
		}, false},
		{"to revoke it", func(p *idp.Provider, used, _ string) error {
			return p.Grants.RevokeToken(t.Context(), c, used)
		}, false},
		{"to revoke it after the period", func(p *idp.Provider, used, _ string) error {
			w.pass(10 * time.Second)
			return p.Grants.RevokeToken(t.Context(), c, used)
		}, false},
		{"to revoke it, with another secret", func(p *idp.Provider, used, _ string) error {
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
				t.Errorf("a used refresh token %s, at %s: %v", tt.name, node, err)
			}

			if got := w.refresh(c, next); (got.status == http.StatusOK) != tt.lives {
				t.Errorf("the newest refresh token, after the one before %s at %s: %d %s", tt.name, node,
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
		t.Errorf("the predecessor of a revoked token: %d %s", got.status, got.body)
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
		t.Errorf("another client's refresh: %d %s", got.status, got.body)
	}
	if got := refresh(old, "scope", "openid profile"); got.json(t)["error"] != "invalid_scope" {
		t.Errorf("a wider scope: %d %s", got.status, got.body)
	}

	// The scope may be narrowed. The ID token still describes the same login (OpenID Connect Core,
	// section 12.2).
	second := refresh(old, "scope", "openid").json(t)
	if second["scope"] != "openid" || second["refresh_token"] == old || second["refresh_token"] == nil {
		t.Fatalf("refresh: %v", second)
	}

	was, is := payload(t, w, text(first["id_token"])), payload(t, w, text(second["id_token"]))
	if is["sub"] != was["sub"] || is["auth_time"] != was["auth_time"] || is["azp"] != was["azp"] ||
		is["sid"] != was["sid"] || is["nonce"] != nil {
		t.Errorf("ID token after a refresh %v, before %v", is, was)
	}

	third := refresh(text(second["refresh_token"])).json(t)
	if third["scope"] != "openid email" {
		t.Errorf("widening to the grant again: %v", third)
	}

	// A token from two generations ago ends the grant.
	if got := refresh(old); got.json(t)["error"] != "invalid_grant" {
		t.Errorf("reuse: %d %s", got.status, got.body)
	}
	if got := refresh(text(third["refresh_token"])); got.json(t)["error"] != "invalid_grant" {
		t.Errorf("the newest token after a reuse: %d %s", got.status, got.body)
	}
	if got := w.userinfo(text(third["access_token"])); got.status != http.StatusUnauthorized {
		t.Errorf("the newest access token after a reuse: %d, want 401", got.status)
	}

	for _, token := range []string{"", "x", strings.Repeat("x", 10_000),
		"AAAAAAAAAAAAAAAAAAAAAA." + strings.Repeat("A", 52)} {
		if got := refresh(token); got.status != http.StatusBadRequest {
			t.Errorf("refresh token %.20q: %d, want 400", token, got.status)
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
			t.Errorf("a refresh token of a subscriber just %s: %d %s", name, got.status, got.body)
		}
		if got := w.redeem(c, code); got.json(t)["error"] != "invalid_grant" {
			t.Errorf("a code of a subscriber just %s: %d %s", name, got.status, got.body)
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
			t.Fatalf("a refresh within 30 days: %d %s", got.status, got.body)
		}
		token = text(got.json(t)["refresh_token"])
	}

	w.pass(7 * 24 * time.Hour) // 181 days
	if got := w.token("grant_type", "refresh_token", "client_id", c.ID, "refresh_token",
		token); got.json(t)["error"] != "invalid_grant" {
		t.Errorf("a refresh after 181 days: %d %s", got.status, got.body)
	}

	token = text(w.tokens(c)["refresh_token"])
	w.pass(31 * 24 * time.Hour)
	if got := w.token("grant_type", "refresh_token", "client_id", c.ID, "refresh_token",
		token); got.json(t)["error"] != "invalid_grant" {
		t.Errorf("a refresh after 31 idle days: %d %s", got.status, got.body)
	}
}

func basic(id, secret string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(url.QueryEscape(id)+":"+url.QueryEscape(secret)))
}

// post sends a form to path. headers are pairs of names and values.
func (w *world) post(path string, form url.Values, headers ...string) reply {
	w.t.Helper()
	req, err := http.NewRequest(http.MethodPost, w.url+path, strings.NewReader(form.Encode()))
	must(w.t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	return w.browser().do(req)
}

// TestClientAuthentication shows how clients authenticate at the token endpoint, and which
// errors they get.
func TestClientAuthentication(t *testing.T) {
	w := newWorld(t)
	service := func(m idp.AuthMethod) (idp.Client, string) {
		return w.client(func(n *idp.Client) {
			n.Type, n.AuthMethod = idp.Service, m
			n.RedirectURIs, n.Scopes = nil, []string{"voice"}
		})
	}

	b, bSecret := service(idp.AuthBasic)
	p, pSecret := service(idp.AuthPost)
	spa, _ := w.client(nil)
	cc := func(pairs ...string) url.Values {
		return with(url.Values{"grant_type": {"client_credentials"}}, pairs...)
	}

	tests := []struct {
		name    string
		form    url.Values
		headers []string
		status  int
		code    string
	}{
		{"basic", cc(), []string{"Authorization", basic(b.ID, bSecret)}, 200, ""},
		{"basic in lower case", cc(), []string{"Authorization", "b" + basic(b.ID, bSecret)[1:]}, 200, ""},
		{"basic and the same client_id", cc("client_id", b.ID),
			[]string{"Authorization", basic(b.ID, bSecret)}, 200, ""},
		{"post", cc("client_id", p.ID, "client_secret", pSecret), nil, 200, ""},
		{"wrong secret", cc(), []string{"Authorization", basic(b.ID, "wrong")}, 401, "invalid_client"},
		{"unknown client", cc(), []string{"Authorization", basic("unknown", bSecret)}, 401, "invalid_client"},
		{"another's secret", cc(), []string{"Authorization", basic(b.ID, pSecret)}, 401, "invalid_client"},
		{"basic for post", cc(), []string{"Authorization", basic(p.ID, pSecret)}, 401, "invalid_client"},
		{"post for basic", cc("client_id", b.ID, "client_secret", bSecret), nil, 401, "invalid_client"},
		{"no secret", cc("client_id", p.ID), nil, 401, "invalid_client"},
		{"no client", cc(), nil, 401, "invalid_client"},
		{"a public client with a secret", cc("client_id", spa.ID, "client_secret", "x"), nil, 401, "invalid_client"},
		{"a public client", cc("client_id", spa.ID), nil, 400, "unauthorized_client"},
		{"the other method without a value", cc("client_secret", ""),
			[]string{"Authorization", basic(b.ID, bSecret)}, 200, ""},
		{"two ways", cc("client_secret", bSecret), []string{"Authorization", basic(b.ID, bSecret)}, 400,
			"invalid_request"},
		{"two clients", cc("client_id", p.ID), []string{"Authorization", basic(b.ID, bSecret)}, 400,
			"invalid_request"},
		{"two headers", cc(), []string{"Authorization", basic(b.ID, bSecret), "Authorization",
			basic(b.ID, bSecret)}, 401, "invalid_client"},
		{"bad base64", cc(), []string{"Authorization", "Basic !!!"}, 401, "invalid_client"},
		{"no colon", cc(), []string{"Authorization",
			"Basic " + base64.StdEncoding.EncodeToString([]byte("abc"))}, 401, "invalid_client"},
		{"bad escape", cc(), []string{"Authorization",
			"Basic " + base64.StdEncoding.EncodeToString([]byte("%zz:%zz"))}, 401, "invalid_client"},
		{"assertion", cc("client_id", p.ID, "client_assertion", "x.y.z", "client_assertion_type",
			"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"), nil, 401, "invalid_client"},
		{"scope not registered", cc("client_id", p.ID, "client_secret", pSecret, "scope", "Fax"), nil, 400,
			"invalid_scope"},
		{"openid", cc("client_id", p.ID, "client_secret", pSecret, "scope", "openid"), nil, 400, "invalid_scope"},
		{"a grant of another type", cc("client_id", p.ID, "client_secret", pSecret, "grant_type",
			"authorization_code", "code", "x", "redirect_uri", "y"), nil, 400, "unauthorized_client"},
		{"password grant", cc("client_id", p.ID, "client_secret", pSecret, "grant_type", "password"), nil,
			400, "unsupported_grant_type"},
		{"jwt-bearer", cc("client_id", p.ID, "grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer",
			"assertion", "x"), nil, 400, "unsupported_grant_type"},
		{"token exchange", cc("client_id", p.ID, "client_secret", pSecret, "grant_type",
			"urn:ietf:params:oauth:grant-type:token-exchange"), nil, 400, "unauthorized_client"},
		{"no grant_type", url.Values{"client_id": {p.ID}, "client_secret": {pSecret}}, nil, 400, "invalid_request"},
		{"repeated", url.Values{"grant_type": {"client_credentials", "client_credentials"}}, nil, 400,
			"invalid_request"},
	}

	for _, tt := range tests {
		got := w.post("/oauth/token", tt.form, tt.headers...)
		if got.status != tt.status || tt.code != "" && got.json(t)["error"] != tt.code {
			t.Errorf("%s: %d %s, want %d %s", tt.name, got.status, got.body, tt.status, tt.code)
		}

		if got.header.Get("Cache-Control") != "no-store" ||
			!strings.HasPrefix(got.header.Get("Content-Type"), "application/json") {
			t.Errorf("%s: headers %v", tt.name, got.header)
		}
		// Only a client that used the header, or did not identify itself, gets a challenge (RFC
		// 6749, section 5.2).
		if want := got.status == 401 && (len(tt.headers) > 0 ||
			!tt.form.Has("client_id")); want != (got.header.Get("WWW-Authenticate") != "") {
			t.Errorf("%s: %d with WWW-Authenticate %q", tt.name, got.status, got.header.Get("WWW-Authenticate"))
		}
	}

	set := w.post("/oauth/token", cc(), "Authorization", basic(b.ID, bSecret)).json(t)
	access, err := w.idp.Tokens.Open(t.Context(), text(set["access_token"]))
	if err != nil || access.ClientID != b.ID || access.SubscriberID != "" || set["scope"] != "Voice" ||
		set["refresh_token"] != nil {
		t.Errorf("client_credentials returns %v: %+v, %v", set, access, err)
	}
}

// TestTokenRequestShape shows which requests are rejected only because of their form.
func TestTokenRequestShape(t *testing.T) {
	w := newWorld(t)
	spa, _ := w.client(nil)
	service, serviceSecret := w.client(func(n *idp.Client) {
		n.Type, n.AuthMethod, n.RedirectURIs = idp.Service, idp.AuthPost, nil
	})

	do := func(method, path, kind, body string) reply {
		req, err := http.NewRequest(method, w.url+path, strings.NewReader(body))
		must(t, err)
		if kind != "" {
			req.Header.Set("Content-Type", kind)
		}
		return w.browser().do(req)
	}

	const form = "application/x-www-form-urlencoded"
	tests := []struct {
		name, method, path, kind, body string
		want                           int
	}{
		{"GET", http.MethodGet, "/oauth/token?grant_type=client_credentials", "", "", 405},
		{"PUT", http.MethodPut, "/oauth/token", form, "", 405},
		{"query", http.MethodPost, "/oauth/token?client_id=x", form, "grant_type=client_credentials", 400},
		{"JSON", http.MethodPost, "/oauth/token", "application/json", `{"grant_type":"client_credentials"}`, 415},
		{"multipart", http.MethodPost, "/oauth/token", "multipart/form-data; boundary=x", "", 415},
		{"UTF-16", http.MethodPost, "/oauth/token", form + "; charset=utf-16", "", 415},
		{"no content type", http.MethodPost, "/oauth/token", "", "grant_type=client_credentials", 415},
		{"many parameters", http.MethodPost, "/oauth/token", form, strings.Repeat("a=1&", 5000), 400},
		{"large", http.MethodPost, "/oauth/token", form, "a=" + strings.Repeat("x", 1<<20), 413},
		{"NUL", http.MethodPost, "/oauth/token", form, "grant_type=refresh_token&client_id=%00", 400},
		{"not UTF-8", http.MethodPost, "/oauth/token", form, "grant_type=refresh_token&client_id=%ff", 400},
		{"bad escape", http.MethodPost, "/oauth/token", form, "grant_type=%zz", 400},
		{"introspect GET", http.MethodGet, "/oauth/introspect?token=x", "", "", 405},
		{"introspect without authentication", http.MethodPost, "/oauth/introspect", form, "token=x", 401},
		{"introspect with only a client_id", http.MethodPost, "/oauth/introspect", form, "token=x&client_id=y", 401},
		{"introspect with an empty secret", http.MethodPost, "/oauth/introspect", form,
			"token=x&client_secret=&client_id=" + spa.ID, 401},
		{"introspect without a token", http.MethodPost, "/oauth/introspect", form,
			"client_secret=" + serviceSecret + "&client_id=" + service.ID, 400},
		{"introspect", http.MethodPost, "/oauth/introspect", form,
			"token=x&client_secret=" + serviceSecret + "&client_id=" + service.ID, 200},
		{"revoke GET", http.MethodGet, "/oauth/revoke?token=x", "", "", 405},
	}

	for _, tt := range tests {
		if got := do(tt.method, tt.path, tt.kind, tt.body); got.status != tt.want {
			t.Errorf("%s: %d %s, want %d", tt.name, got.status, got.body, tt.want)
		}
	}
}

// TestMobileLegacy shows the exceptions for clients with the profile mobile-legacy. They may omit
// parameters that have defaults, and send JSON.
func TestMobileLegacy(t *testing.T) {
	w := newWorld(t)
	c, secret1 := w.client(func(n *idp.Client) {
		n.Type, n.Profile, n.AuthMethod = idp.Native, idp.MobileLegacy, idp.AuthPost
		n.RedirectURIs = []string{"com.dialer.app://oauth-callback"}
	})

	b := w.browser()
	v := url.Values{"client_id": {c.ID}, "redirect_uri": {c.RedirectURIs[0]}, "code_challenge": {challenge}}
	code := b.logIn(b.authorize(v), email, secret).param("code")
	body := `{"client_id":"` + c.ID + `","client_secret":"` +
		secret1 + `","grant_type":"authorization_code","code":"` + code + `","code_verifier":"` + verifier + `"}`

	req, err := http.NewRequest(http.MethodPost, w.url+"/oauth/token", strings.NewReader(body))
	must(t, err)
	req.Header.Set("Content-Type", "application/json")
	got := b.do(req)
	if got.status != http.StatusOK || got.json(t)["id_token"] == nil ||
		got.json(t)["scope"] != "openid profile email offline_access" {
		t.Errorf("a mobile-legacy client: %d %s", got.status, got.body)
	}

	for _, pairs := range [][]string{{"code_challenge", ""}, {"code_challenge_method", "plain"}} {
		if got := b.authorize(request(c, pairs...)); got.param("error") != "invalid_request" {
			t.Errorf("mobile-legacy with %v: %v", pairs, got.location)
		}
	}
}

// TestInventedRefreshToken shows that a JWT access token does not help anyone to invent a refresh
// token that ends the grant, because it does not contain the grant's ID.
func TestInventedRefreshToken(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(func(n *idp.Client) { n.AccessToken = idp.JWTToken })
	set := w.tokens(c, "scope", "openid offline_access")
	seen := text(payload(t, w, text(set["access_token"]))["grant_id"])

	invented := []string{seen + "." + strings.Repeat("A", 52)}
	if id, err := uuid.Parse(seen); err == nil {
		invented = append(invented, base64.RawURLEncoding.EncodeToString(id[:])+"."+strings.Repeat("A", 52))
	}

	for _, token := range invented {
		if got := w.token("grant_type", "refresh_token", "client_id", c.ID, "refresh_token",
			token); got.json(t)["error"] != "invalid_grant" {
			t.Errorf("an invented refresh token: %d %s", got.status, got.body)
		}
	}

	if got := w.token("grant_type", "refresh_token", "client_id", c.ID, "refresh_token",
		text(set["refresh_token"])); got.status != http.StatusOK {
		t.Errorf("the valid refresh token afterwards: %d %s", got.status, got.body)
	}
}

// TestNarrowedClient shows that existing grants and requests lose the rights that their client
// loses.
func TestNarrowedClient(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(func(n *idp.Client) { n.Scopes = []string{"openid", "email", "Voice"} })
	set := w.tokens(c, "scope", "openid email Voice")

	b := w.browser()
	page := b.authorize(request(c))
	c.Scopes = []string{"openid", "email"}
	c.RedirectURIs = []string{"https://app.example/moved"}
	must(t, w.rewrite(c))

	got := w.token("grant_type", "refresh_token", "client_id", c.ID, "refresh_token", text(set["refresh_token"]))
	if got.json(t)["scope"] != "openid email" {
		t.Errorf("a refresh after the client was narrowed: %d %s", got.status, got.body)
	}
	if got := b.logIn(page, email, secret); got.status != http.StatusBadRequest || got.location != nil {
		t.Errorf("a login for a redirect URI that was removed: %d %v, want 400", got.status, got.location)
	}
}

// TestParameterNames shows that parameter names are case-sensitive.
func TestParameterNames(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	set := w.tokens(c)
	form := url.Values{"grant_type": {"refresh_token"}, "client_id": {"nobody"}, "refresh_token": {"x"},
		"CLIENT_ID": {c.ID}, "REFRESH_TOKEN": {text(set["refresh_token"])}}
	for range 20 {
		if got := w.post("/oauth/token", form); got.json(t)["error"] != "invalid_client" {
			t.Fatalf("parameters with names in two spellings: %d %s", got.status, got.body)
		}
	}
}
