package oidc_test

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/keys"
)

// TestTokens shows what the token endpoint issues, for each format of access tokens.
func TestTokens(t *testing.T) {
	w := newWorld(t)
	for _, tt := range []struct {
		format      idp.TokenFormat
		alg         keys.Use
		wantSeconds float64
	}{
		{format: idp.FabricToken, alg: keys.RS256, wantSeconds: 7200},
		{format: idp.JWTToken, alg: keys.ES256, wantSeconds: 900},
	} {
		t.Run(string(tt.format), func(t *testing.T) {
			c, _ := w.client(func(n *idp.Client) { n.AccessToken, n.IDTokenAlg = tt.format, tt.alg })
			tokens := w.tokens(c, "scope", "openid email profile offline_access", "nonce", "n1")
			wantMembers(t, "the token response", tokens, map[string]any{
				"token_type": "Bearer",
				"expires_in": tt.wantSeconds,
				"scope":      "openid email profile offline_access",
			})
			if tokens["refresh_token"] == nil {
				t.Error("the token response has no refresh token, want one")
			}

			id := idClaims(t, tokens)
			wantMembers(t, "the ID token", id, map[string]any{
				"iss":   w.url + "/",
				"sub":   w.ada.ID,
				"aud":   c.ID,
				"azp":   c.ID,
				"nonce": "n1",
				"email": nil,
			})
			for _, claim := range []string{"sid", "at_hash"} {
				if id[claim] == nil {
					t.Errorf("the ID token has no %s, want one", claim)
				}
			}
			if _, ok := w.idp.Ring.VerifyJWS(text(tokens["id_token"]), "JWT"); !ok {
				t.Error("the signature of the ID token is invalid")
			}

			info := w.userinfo(text(tokens["access_token"])).json(t)
			wantMembers(t, "userinfo", info, map[string]any{"sub": w.ada.ID, "email": email, "given_name": "Ada"})

			access, err := w.idp.Tokens.Open(t.Context(), text(tokens["access_token"]))
			must(t, err)
			if access.SessionID != id["sid"] {
				t.Errorf("the access token belongs to the login %q, want %v", access.SessionID, id["sid"])
			}
			if access.SubscriberID != w.ada.ID {
				t.Errorf("the access token belongs to the subscriber %q, want %q", access.SubscriberID, w.ada.ID)
			}
		})
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
	confidential, clientSecret := w.client(func(n *idp.Client) {
		n.Type, n.PKCEOptional, n.AuthMethod = idp.Web, true, idp.AuthPost
	})

	code := w.newBrowser().code(c)
	for _, tt := range []struct{ name, param, value string }{
		{"another client", "client_id", other.ID},
		{"another redirect_uri", "redirect_uri", "https://app.example/other"},
		{"redirect_uri in capitals", "redirect_uri", strings.ToUpper(callback)},
		{"no verifier", "code_verifier", ""},
		{"a different verifier", "code_verifier", strings.Repeat("a", 43)},
		{"a short verifier", "code_verifier", verifier[:42]},
		{"a long verifier", "code_verifier", strings.Repeat("a", 129)},
		{"the challenge as verifier", "code_verifier", challenge},
		{"a different code", "code", "x"},
		{"a huge code", "code", strings.Repeat("x", 10_000)},
	} {
		got := w.redeem(c, code, tt.param, tt.value)
		wantStatus(t, tt.name, got, http.StatusBadRequest)
		wantError(t, tt.name, got, "invalid_grant")
	}
	wantStatus(t, "the owner after refused redemptions", w.redeem(c, code), http.StatusOK)

	// If the request had no challenge, the redemption must have a redirect_uri and must not have a
	// verifier.
	code = w.newBrowser().code(confidential, "code_challenge", "", "code_challenge_method", "")
	got := w.redeem(confidential, code, "client_secret", clientSecret)
	wantError(t, "a verifier without a challenge", got, "invalid_grant")
	got = w.redeem(confidential, code, "client_secret", clientSecret, "code_verifier", "", "redirect_uri", "")
	wantError(t, "neither PKCE nor redirect_uri", got, "invalid_grant")
	got = w.redeem(confidential, code, "client_secret", clientSecret, "code_verifier", "")
	wantStatus(t, "PKCE omitted where it is optional", got, http.StatusOK)

	got = w.redeem(c, w.newBrowser().code(c), "redirect_uri", "")
	wantStatus(t, "redirect_uri omitted with PKCE", got, http.StatusOK)

	// A code is valid for a minute.
	code = w.newBrowser().code(c)
	w.pass(61 * time.Second)
	wantError(t, "a code 61 seconds old", w.redeem(c, code), "invalid_grant")
}

// TestCodeReplay shows that a second redemption of a code revokes the tokens of the first (RFC
// 6749, section 4.1.2).
func TestCodeReplay(t *testing.T) {
	w := newWorld(t)
	for _, format := range []idp.TokenFormat{idp.FabricToken, idp.JWTToken} {
		c, _ := w.client(func(n *idp.Client) { n.AccessToken = format })
		code := w.newBrowser().code(c, "scope", "openid offline_access")
		first := w.redeem(c, code).json(t)

		before := w.userinfo(text(first["access_token"]))
		wantStatus(t, "userinfo before the replay", before, http.StatusOK)
		wantError(t, "a second redemption", w.redeem(c, code), "invalid_grant")

		after := w.userinfo(text(first["access_token"]))
		wantStatus(t, "the first access token after the replay", after, http.StatusUnauthorized)
		refreshed := w.refresh(c, text(first["refresh_token"]))
		wantError(t, "the first refresh token after the replay", refreshed, "invalid_grant")
	}
}

// TestParallel shows that only one of several concurrent redemptions of the same code succeeds.
func TestParallel(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	code := w.newBrowser().code(c)

	var redemptions sync.WaitGroup
	var succeeded atomic.Int32
	for range 50 {
		redemptions.Go(func() {
			if w.redeem(c, code).status == http.StatusOK {
				succeeded.Add(1)
			}
		})
	}
	redemptions.Wait()
	if n := succeeded.Load(); n != 1 {
		t.Errorf("%d of 50 redemptions of one code succeeded, want 1", n)
	}
}

// post sends a form to path. headers are pairs of names and values.
func (w *world) post(path string, form url.Values, headers ...string) reply {
	w.t.Helper()
	req, err := http.NewRequest(http.MethodPost, w.url+path, strings.NewReader(form.Encode()))
	must(w.t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for pair := range slices.Chunk(headers, 2) {
		req.Header.Add(pair[0], pair[1])
	}
	return w.newBrowser().do(req)
}

// TestTokenRequestShape shows which requests with a token are rejected because of their form.
func TestTokenRequestShape(t *testing.T) {
	w := newWorld(t)
	spa, _ := w.client(nil)
	service, serviceSecret := w.client(func(n *idp.Client) {
		n.Type, n.AuthMethod, n.RedirectURIs = idp.Service, idp.AuthPost, nil
	})

	const token, introspect, revoke = "/oauth/token", "/oauth/introspect", "/oauth/revoke"
	const form = "application/x-www-form-urlencoded"
	emptySecret := "token=x&client_secret=&client_id=" + spa.ID
	asService := "&client_secret=" + serviceSecret + "&client_id=" + service.ID
	for _, tt := range []struct {
		name, method, path, contentType, body string
		wantStatus                            int
	}{
		{"GET", "GET", token + "?grant_type=client_credentials", "", "", 405},
		{"PUT", "PUT", token, form, "", 405},
		{"query", "POST", token + "?client_id=x", form, "grant_type=client_credentials", 400},
		{"JSON", "POST", token, "application/json", `{"grant_type":"client_credentials"}`, 415},
		{"multipart", "POST", token, "multipart/form-data; boundary=x", "", 415},
		{"UTF-16", "POST", token, form + "; charset=utf-16", "", 415},
		{"no content type", "POST", token, "", "grant_type=client_credentials", 415},
		{"many parameters", "POST", token, form, strings.Repeat("a=1&", 5000), 400},
		{"large", "POST", token, form, "a=" + strings.Repeat("x", 1<<20), 413},
		{"NUL", "POST", token, form, "grant_type=refresh_token&client_id=%00", 400},
		{"not UTF-8", "POST", token, form, "grant_type=refresh_token&client_id=%ff", 400},
		{"bad escape", "POST", token, form, "grant_type=%zz", 400},
		{"introspect", "POST", introspect, form, "token=x" + asService, 200},
		{"introspect GET", "GET", introspect + "?token=x", "", "", 405},
		{"introspect without authentication", "POST", introspect, form, "token=x", 401},
		{"introspect with only a client_id", "POST", introspect, form, "token=x&client_id=y", 401},
		{"introspect with an empty secret", "POST", introspect, form, emptySecret, 401},
		{"introspect without a token", "POST", introspect, form, asService, 400},
		{"revoke GET", "GET", revoke + "?token=x", "", "", 405},
	} {
		req, err := http.NewRequest(tt.method, w.url+tt.path, strings.NewReader(tt.body))
		must(t, err)
		if tt.contentType != "" {
			req.Header.Set("Content-Type", tt.contentType)
		}
		wantStatus(t, tt.name, w.newBrowser().do(req), tt.wantStatus)
	}
}

// TestMobileLegacy shows the exceptions for clients with the profile mobile-legacy. They may omit
// parameters that have defaults, and send JSON.
func TestMobileLegacy(t *testing.T) {
	w := newWorld(t)
	c, clientSecret := w.client(func(n *idp.Client) {
		n.Type, n.Profile, n.AuthMethod = idp.Native, idp.MobileLegacy, idp.AuthPost
		n.RedirectURIs = []string{"com.dialer.app://oauth-callback"}
	})

	b := w.newBrowser()
	params := url.Values{"client_id": {c.ID}, "redirect_uri": {c.RedirectURIs[0]}, "code_challenge": {challenge}}
	code := b.logIn(b.authorize(params), email, secret).param("code")
	got := w.send("POST", "/oauth/token", "", map[string]string{
		"client_id":     c.ID,
		"client_secret": clientSecret,
		"grant_type":    "authorization_code",
		"code":          code,
		"code_verifier": verifier,
	})
	wantStatus(t, "a request in JSON", got, http.StatusOK)
	tokens := got.json(t)
	if tokens["id_token"] == nil {
		t.Errorf("the response is %v, want an ID token", tokens)
	}
	if tokens["scope"] != "openid profile email offline_access" {
		t.Errorf("the scope is %v, want the default scopes", tokens["scope"])
	}

	missing := b.authorize(request(c, "code_challenge", ""))
	wantParam(t, "no challenge", missing, "error", "invalid_request")
	plain := b.authorize(request(c, "code_challenge_method", "plain"))
	wantParam(t, "a plain challenge", plain, "error", "invalid_request")
}

// TestNarrowedClient shows that if a client loses rights, its existing grants and requests lose
// them, too.
func TestNarrowedClient(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(func(n *idp.Client) { n.Scopes = []string{"openid", "email", "Voice"} })
	set := w.tokens(c, "scope", "openid email Voice")

	b := w.newBrowser()
	page := b.authorize(request(c))
	c.Scopes = []string{"openid", "email"}
	c.RedirectURIs = []string{"https://app.example/moved"}
	must(t, w.rewrite(c))

	refreshed := w.refresh(c, text(set["refresh_token"])).json(t)
	if refreshed["scope"] != "openid email" {
		t.Errorf("after the client was narrowed, a refresh returns the scope %v, want openid email", refreshed["scope"])
	}
	moved := b.logIn(page, email, secret)
	wantStatus(t, "a login for a redirect URI that was removed", moved, http.StatusBadRequest)
	if moved.location != nil {
		t.Errorf("a login for a redirect URI that was removed redirects to %v", moved.location)
	}
}

// TestServiceWithImportedID shows that a service can use its tokens even if it was imported with an
// ID that has the form of a pairwise subject.
func TestServiceWithImportedID(t *testing.T) {
	w := newWorld(t)
	c, err := w.idp.Clients.Import(t.Context(), idp.Client{
		ID:         "acme-billing-service-g",
		ProjectID:  w.project.ID,
		Type:       idp.Service,
		SecretHash: idp.ImportedSecret(secret),
		Scopes:     []string{"Voice"},
	}, false)
	must(t, err)

	credentials := basic(c.ID, secret)
	got := w.post("/oauth/token", url.Values{"grant_type": {"client_credentials"}}, "Authorization", credentials)
	wantStatus(t, "the token request", got, http.StatusOK)
	form := url.Values{"token": {text(got.json(t)["access_token"])}}
	introspected := w.post("/oauth/introspect", form, "Authorization", credentials)
	wantMembers(t, "introspection", introspected.json(t), map[string]any{"active": true, "sub": c.ID})
}

// TestParameterNames shows that parameter names are case-sensitive.
func TestParameterNames(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	form := url.Values{
		"grant_type":    {"refresh_token"},
		"client_id":     {"nobody"},
		"refresh_token": {"x"},
		"CLIENT_ID":     {c.ID},
		"REFRESH_TOKEN": {text(w.tokens(c)["refresh_token"])},
	}
	for range 20 {
		wantError(t, "names in two spellings", w.post("/oauth/token", form), "invalid_client")
	}
}
