package oidc_test

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/factor/factortest"
)

// TestClaimsParameter shows that claims requested by name are returned where they were requested, and
// that no other claims are returned. This also applies after a refresh, and to both formats of access
// tokens.
func TestClaimsParameter(t *testing.T) {
	w := newWorld(t)
	const requested = `{
		"userinfo": {"given_name": {"essential": true}, "phone_number": null},
		"id_token": {"email": null, "auth_time": {"essential": true}, "nonsense": {"value": 7}}
	}`
	for _, format := range []idp.TokenFormat{idp.FabricToken, idp.JWTToken} {
		t.Run(string(format), func(t *testing.T) {
			c, _ := w.client(func(n *idp.Client) { n.AccessToken = format })
			first := w.tokens(c, "scope", "openid offline_access", "claims", requested)
			wantRequestedClaims(t, w, first)
			refreshed := w.refresh(c, text(first["refresh_token"])).json(t)
			wantRequestedClaims(t, w, refreshed)

			plain := w.tokens(c, "scope", "openid")
			if info := w.userinfo(text(plain["access_token"])).json(t); len(info) != 1 {
				t.Errorf("userinfo of a login that requested no claims is %v, want only sub", info)
			}
		})
	}
}

// wantRequestedClaims checks that tokens have the claims that TestClaimsParameter requests, in the ID
// token and at userinfo.
func wantRequestedClaims(t *testing.T, w *world, tokens map[string]any) {
	t.Helper()
	info := w.userinfo(text(tokens["access_token"])).json(t)
	want := map[string]any{"sub": w.ada.ID, "given_name": "Ada"}
	if !maps.Equal(info, want) {
		t.Errorf("userinfo is %v, want %v", info, want)
	}

	id := idClaims(t, tokens)
	if id["email"] != email {
		t.Errorf("the email in the ID token is %v, want %s", id["email"], email)
	}
	if id["given_name"] != nil {
		t.Errorf("the given_name in the ID token is %v, want none", id["given_name"])
	}
	if id["auth_time"] == nil {
		t.Error("the ID token has no auth_time, want one")
	}
}

// TestClaimsAreRights shows that a client never gets a claim of a scope for which it is not registered.
// A client that is not first-party needs the person's consent to the claims.
func TestClaimsAreRights(t *testing.T) {
	w := newWorld(t)
	const both = `{"userinfo":{"given_name":null,"email":null},"id_token":{"email":null}}`

	narrow, _ := w.client(func(n *idp.Client) { n.Scopes = []string{"openid", "profile"} })
	tokens := w.tokens(narrow, "claims", both)
	info := w.userinfo(text(tokens["access_token"])).json(t)
	if info["email"] != nil {
		t.Errorf("userinfo without the scope email has the email %v, want none", info["email"])
	}
	if info["given_name"] != "Ada" {
		t.Errorf("the given_name in userinfo is %v, want Ada", info["given_name"])
	}
	if id := idClaims(t, tokens); id["email"] != nil {
		t.Errorf("the ID token without the scope email has the email %v, want none", id["email"])
	}

	// Claims also need consent, unless the client is first-party.
	c, _ := w.client(func(n *idp.Client) { n.FirstParty = false })
	b := w.newBrowser()
	page := b.logIn(b.authorize(request(c)), email, secret)
	wantCode(t, "allowing openid", b.consent(page, "allow"))
	silent := b.authorize(request(c, "claims", both, "prompt", "none"))
	wantParam(t, "claims without consent", silent, "error", "consent_required")

	page = b.authorize(request(c, "claims", both))
	wantText(t, "the consent page", page, "See your email address", "See your profile")
	wantCode(t, "allowing the claims", b.consent(page, "allow"))
}

// TestClaimsSub shows that a value of the claim sub restricts who may answer a request.
func TestClaimsSub(t *testing.T) {
	w := newWorld(t)
	bob := w.subscriber("bob@example.com")
	c, _ := w.client(nil)
	pairwise, _ := w.client(func(n *idp.Client) { n.SubjectType, n.AccessToken = idp.Pairwise, idp.JWTToken })
	b := w.newBrowser()
	b.code(c)

	sub := func(c idp.Client, id string) string { return strconv.Quote(w.idp.Subjects.SubjectFor(c, id)) }
	inIDToken := func(restriction string) string { return `{"id_token":{"sub":{` + restriction + `}}}` }
	both := sub(c, bob.ID) + `,` + sub(c, w.ada.ID)
	for _, tt := range []struct {
		name      string
		client    idp.Client
		claims    string
		wantError string // "" means a code
	}{
		{name: "ada", client: c, claims: inIDToken(`"value":` + sub(c, w.ada.ID))},
		{name: "ada at userinfo", client: c, claims: `{"userinfo":{"sub":{"value":` + sub(c, w.ada.ID) + `}}}`},
		{name: "one of two", client: c, claims: inIDToken(`"values":[` + both + `]`)},
		{name: "any subject", client: c, claims: inIDToken(`"essential":true`)},
		{name: "ada's pairwise sub", client: pairwise, claims: inIDToken(`"value":` + sub(pairwise, w.ada.ID))},
		{
			name:      "ada's sub of another sector",
			client:    pairwise,
			claims:    inIDToken(`"value":` + sub(c, w.ada.ID)),
			wantError: "login_required",
		},
		{name: "bob", client: c, claims: inIDToken(`"value":` + sub(c, bob.ID)), wantError: "login_required"},
		{
			name:   "ada and bob",
			client: c,
			claims: `{"id_token":{"sub":{"value":` + sub(c, w.ada.ID) + `}},` +
				`"userinfo":{"sub":{"value":` + sub(c, bob.ID) + `}}}`,
			wantError: "login_required",
		},
		{name: "a number", client: c, claims: inIDToken(`"value":7`), wantError: "login_required"},
		{name: "no subject", client: c, claims: inIDToken(`"values":[]`), wantError: "login_required"},
	} {
		got := b.authorize(request(tt.client, "prompt", "none", "claims", tt.claims))
		wantAnswer(t, tt.name, got, tt.wantError)
	}

	hint := text(w.tokens(c)["id_token"])
	got := b.authorize(request(c, "prompt", "none", "id_token_hint", hint,
		"claims", inIDToken(`"value":`+sub(c, bob.ID))))
	wantParam(t, "ada's hint and bob's sub", got, "error", "login_required")
}

// TestACR shows that a request fails if it has an essential acr that cannot be satisfied. If the
// acr is voluntary, the request succeeds, and the ID token reports the actual class.
func TestACR(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	const unmet = "unmet_authentication_requirements"
	for _, tt := range []struct {
		param, value string
		wantError    string // "" means a login with a password
	}{
		{param: "acr_values", value: ""},
		{param: "acr_values", value: "1 2"},
		{param: "acr_values", value: "urn:mace:incommon:iap:silver"},
		{param: "claims", value: `{"id_token":{"acr":{"essential":true}}}`},
		{param: "claims", value: `{"id_token":{"acr":{"essential":true,"values":["2","1"]}}}`},
		{param: "claims", value: `{"id_token":{"acr":{"value":"2"}}}`},
		{param: "claims", value: `{"id_token":{"acr":{"essential":true,"value":"3"}}}`, wantError: unmet},
		{param: "claims", value: `{"id_token":{"acr":{"essential":true,"values":[]}}}`, wantError: unmet},
		{param: "claims", value: `{"id_token":{"acr":{"essential":true,"value":1}}}`, wantError: unmet},
		{param: "claims", value: `{`, wantError: "invalid_request"},
		{param: "claims", value: `[]`, wantError: "invalid_request"},
		{param: "claims", value: `{"id_token":{"acr":"1"}}`, wantError: "invalid_request"},
	} {
		t.Run(tt.param+" "+tt.value, func(t *testing.T) {
			b := w.newBrowser()
			got := b.authorize(request(c, tt.param, tt.value))
			if tt.wantError != "" {
				wantParam(t, "the request", got, "error", tt.wantError)
				wantParam(t, "the request", got, "state", "s")
				return
			}

			got = w.redeem(c, b.logIn(got, email, secret).param("code"))
			id := idClaims(t, got.json(t))
			if id["acr"] != "1" {
				t.Errorf("the ID token has the acr %v, want 1", id["acr"])
			}
			if amr := text(id["amr"]); amr != "[pwd]" {
				t.Errorf("the ID token has the amr %s, want [pwd]", amr)
			}
		})
	}
}

// TestACRAfterRefresh shows that a refresh keeps the acr that the client has required, although the
// login has a higher one.
func TestACRAfterRefresh(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	key := w.app()
	b := w.newBrowser()
	one := request(c, "claims", `{"id_token":{"acr":{"essential":true,"value":"1"}}}`)
	got := b.enterCode(b.logIn(b.authorize(one), email, secret), factortest.Code(key, w.now()))

	tokens := w.redeem(c, got.param("code")).json(t)
	for _, when := range []string{"before the refresh", "after the refresh"} {
		if acr := idClaims(t, tokens)["acr"]; acr != "1" {
			t.Errorf("%s, the ID token has the acr %v, want 1", when, acr)
		}
		tokens = w.refresh(c, text(tokens["refresh_token"])).json(t)
	}
}

// TestDisplayHints shows that preferences for the look of a page never make a request fail.
func TestDisplayHints(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	for _, hint := range []struct{ param, value string }{
		{"display", "page"}, {"display", "popup"}, {"display", "touch"}, {"display", "wap"}, {"display", "nonsense"},
		{"ui_locales", "se"}, {"ui_locales", "fr-CA fr en"}, {"claims_locales", "se"}, {"extra", "foobar"},
	} {
		got := w.newBrowser().authorize(request(c, hint.param, hint.value))
		wantStatus(t, hint.param+"="+hint.value, got, http.StatusOK)
		wantText(t, hint.param+"="+hint.value, got, `id="login-submit"`)
	}
}

// TestScopesAreClaims shows that the scopes of a token determine which claims are returned.
func TestScopesAreClaims(t *testing.T) {
	w := newWorld(t)
	lastName, zone := "Lovelace", "Europe/London"
	_, err := w.fabric.Subscribers.Update(t.Context(), w.project.ID, w.ada.ID, fabric.SubscriberInput{
		Profile: fabric.Profile{LastName: &lastName, TimeZone: &zone},
		Claims: &fabric.StandardClaims{
			MiddleName:          "King",
			Nickname:            "Ada",
			PreferredUsername:   "ada",
			ProfilePage:         "https://example.com/ada",
			Picture:             "https://example.com/ada.png",
			Website:             "https://example.com",
			Gender:              "female",
			Birthdate:           "1815-12-10",
			Locale:              "en-GB",
			PhoneNumber:         "+442071234567",
			PhoneNumberVerified: new(bool),
			Address:             &fabric.Postal{Locality: "London", Country: "GB"},
		},
	})
	must(t, err)

	c, _ := w.client(func(n *idp.Client) { n.Scopes = []string{"openid", "profile", "email", "address", "phone"} })
	for scope, want := range map[string]string{
		"openid": "sub",
		"openid profile": "birthdate family_name gender given_name locale middle_name name nickname " +
			"picture preferred_username profile sub updated_at website zoneinfo",
		"openid email":   "email email_verified sub",
		"openid address": "address sub",
		"openid phone":   "phone_number phone_number_verified sub",
	} {
		info := w.userinfo(text(w.tokens(c, "scope", scope)["access_token"])).json(t)
		if got := strings.Join(slices.Sorted(maps.Keys(info)), " "); got != want {
			t.Errorf("%s: userinfo has %s, want %s", scope, got, want)
		}
		for _, claim := range []string{"email_verified", "phone_number_verified"} {
			if info[claim] == true {
				t.Errorf("%s: %s is true, want false or no claim", scope, claim)
			}
		}
	}
}

// TestClaimsAreNarrowed shows that a refresh with a narrower scope loses the claims of the other
// scopes.
func TestClaimsAreNarrowed(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	got := w.tokens(c, "scope", "openid email offline_access", "claims",
		`{"userinfo":{"email":null,"given_name":null},"id_token":{"email":null}}`)
	for _, tt := range []struct {
		scope     string
		wantEmail any // nil if the scope does not include it
	}{
		{scope: "openid email", wantEmail: email},
		{scope: "openid", wantEmail: nil},
	} {
		got = w.refresh(c, text(got["refresh_token"]), "scope", tt.scope).json(t)
		info := w.userinfo(text(got["access_token"])).json(t)
		if info["email"] != tt.wantEmail {
			t.Errorf("%s: the email in userinfo is %v, want %v", tt.scope, info["email"], tt.wantEmail)
		}
		if info["given_name"] != "Ada" {
			t.Errorf("%s: the given_name in userinfo is %v, want Ada", tt.scope, info["given_name"])
		}
		if id := idClaims(t, got); id["email"] != tt.wantEmail {
			t.Errorf("%s: the email in the ID token is %v, want %v", tt.scope, id["email"], tt.wantEmail)
		}
	}
}
