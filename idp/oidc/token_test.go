package oidc_test

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/selvage/selvage/idp"
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
			t.Errorf("%s: the token response is %v", tt.format, got)
		}

		id := idClaims(t, got)
		for name, want := range map[string]any{"iss": w.url + "/", "sub": w.ada.ID, "aud": c.ID, "azp": c.ID,
			"nonce": "n1"} {
			if id[name] != want {
				t.Errorf("%s: ID token's %s = %v, want %v", tt.format, name, id[name], want)
			}
		}

		if _, ok := w.idp.Ring.VerifyJWS(text(got["id_token"]), "JWT"); !ok || id["sid"] == nil ||
			id["at_hash"] == nil || id["email"] != nil {
			t.Errorf("%s: the ID token is %v", tt.format, id)
		}

		info := w.userinfo(text(got["access_token"])).json(t)
		if info["sub"] != w.ada.ID || info["email"] != email || info["given_name"] != "Ada" {
			t.Errorf("%s: userinfo returned %v", tt.format, info)
		}

		access, err := w.idp.Tokens.Open(t.Context(), text(got["access_token"]))
		if err != nil || access.SessionID != id["sid"] || access.SubscriberID != w.ada.ID {
			t.Errorf("%s: the access token is %+v, %v", tt.format, access, err)
		}
	}
}

// payload returns the claims of a JWS.
func payload(t testing.TB, token string) map[string]any {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("not a JWS: %q", token)
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	must(t, err)
	return reply{body: string(raw)}.json(t)
}

// idClaims returns the claims of the ID token in a token response.
func idClaims(t testing.TB, tokens map[string]any) map[string]any {
	t.Helper()
	return payload(t, text(tokens["id_token"]))
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
		{"a different verifier", []string{"code_verifier", strings.Repeat("a", 43)}},
		{"short verifier", []string{"code_verifier", verifier[:42]}},
		{"long verifier", []string{"code_verifier", strings.Repeat("a", 129)}},
		{"the challenge as verifier", []string{"code_verifier", challenge}},
		{"a different code", []string{"code", "x"}},
		{"a huge code", []string{"code", strings.Repeat("x", 10_000)}},
	}

	for _, tt := range tests {
		code := w.browser().code(c)
		if got := w.redeem(c, code, tt.pairs...); got.status != http.StatusBadRequest ||
			got.json(t)["error"] != "invalid_grant" {
			t.Errorf("%s: %d %s, want invalid_grant", tt.name, got.status, got.body)
		}

		// The refused redemption has not used up the code.
		if tt.name == "a different code" || tt.name == "a huge code" {
			continue
		}
		if got := w.redeem(c, code); got.status != http.StatusOK {
			t.Errorf("%s: the owner can no longer redeem the code: %d %s, want 200",
				tt.name, got.status, got.body)
		}
	}

	// If the request had no challenge, the redemption must have a redirect_uri and must not have a
	// verifier.
	code := w.browser().code(confidential, "code_challenge", "", "code_challenge_method", "")
	if got := w.redeem(confidential, code, "client_secret", secret1); got.json(t)["error"] != "invalid_grant" {
		t.Errorf("a verifier without a challenge: %d %s, want invalid_grant", got.status, got.body)
	}
	if got := w.redeem(confidential, code, "client_secret", secret1, "code_verifier", "", "redirect_uri",
		""); got.json(t)["error"] != "invalid_grant" {
		t.Errorf("neither PKCE nor redirect_uri: %d %s, want invalid_grant", got.status, got.body)
	}

	if got := w.redeem(confidential, code, "client_secret", secret1, "code_verifier", ""); got.status != http.StatusOK {
		t.Errorf("PKCE omitted where it is optional: %d %s, want 200", got.status, got.body)
	}

	code = w.browser().code(c)
	if got := w.redeem(c, code, "redirect_uri", ""); got.status != http.StatusOK {
		t.Errorf("redirect_uri omitted with PKCE: %d %s, want 200", got.status, got.body)
	}

	// A code is valid for a minute.
	code = w.browser().code(c)
	w.pass(61 * time.Second)
	if got := w.redeem(c, code); got.json(t)["error"] != "invalid_grant" {
		t.Errorf("a code 61 seconds old: %d %s, want invalid_grant", got.status, got.body)
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
			t.Fatalf("%s: userinfo before the replay: %d, want 200", format, got.status)
		}
		if got := w.redeem(c, code); got.json(t)["error"] != "invalid_grant" {
			t.Errorf("%s: second redemption: %d %s, want invalid_grant", format, got.status, got.body)
		}

		if got := w.userinfo(text(first["access_token"])); got.status != http.StatusUnauthorized {
			t.Errorf("%s: the first access token after the replay: %d, want 401", format, got.status)
		}
		got := w.token("grant_type", "refresh_token", "client_id", c.ID, "refresh_token",
			text(first["refresh_token"]))
		if got.json(t)["error"] != "invalid_grant" {
			t.Errorf("%s: the first refresh token after the replay: %d %s, want invalid_grant",
				format, got.status, got.body)
		}
	}
}

// TestParallel shows that only one of several concurrent redemptions of the same code succeeds.
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

// TestTokenRequestShape shows which token requests are rejected because of their format alone.
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
		t.Errorf("a mobile-legacy client: %d %s, want tokens with the default scopes", got.status, got.body)
	}

	for _, pairs := range [][]string{{"code_challenge", ""}, {"code_challenge_method", "plain"}} {
		if got := b.authorize(request(c, pairs...)); got.param("error") != "invalid_request" {
			t.Errorf("mobile-legacy with %v: %v, want invalid_request", pairs, got.location)
		}
	}
}

// TestNarrowedClient shows that if a client loses rights, its existing grants and requests lose
// them, too.
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
		t.Errorf("a refresh after the client was narrowed: %d %s, want the scope openid email", got.status, got.body)
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
			t.Fatalf("parameters with names in two spellings: %d %s, want invalid_client", got.status, got.body)
		}
	}
}
