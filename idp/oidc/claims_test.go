package oidc_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
)

// TestClaimsParameter shows that a claim requested by name is returned in the requested place, and
// that no other claim is returned. This also applies after a refresh, and to both formats of access
// tokens.
func TestClaimsParameter(t *testing.T) {
	w := newWorld(t)
	for _, kind := range []idp.TokenFormat{idp.FabricToken, idp.JWTToken} {
		c, _ := w.client(func(n *idp.Client) { n.AccessToken = kind })
		got := w.tokens(c, "scope", "openid offline_access", "claims",
			`{"userinfo":{"given_name":{"essential":true},"phone_number":null},"id_token":`+
				`{"email":null,"auth_time":{"essential":true},"nonsense":{"value":7}}}`)
		for _, when := range []string{"first", "refreshed"} {
			info := w.userinfo(text(got["access_token"])).json(t)
			if len(info) != 2 || info["given_name"] != "Ada" || info["sub"] != w.ada.ID {
				t.Errorf("%s, %s: userinfo %v, want sub and given_name", kind, when, info)
			}
			id := idClaims(t, got)
			if id["email"] != email || id["given_name"] != nil || id["auth_time"] == nil {
				t.Errorf("%s, %s: ID token %v, want email and auth_time but no given_name", kind, when, id)
			}
			got = w.token("grant_type", "refresh_token", "client_id", c.ID, "refresh_token",
				text(got["refresh_token"])).json(t)
		}

		plain := w.tokens(c, "scope", "openid")
		if info := w.userinfo(text(plain["access_token"])).json(t); len(info) != 1 {
			t.Errorf("%s: userinfo %v of a login that requested no claims", kind, info)
		}
	}
}

// TestClaimsAreRights shows that a client never gets a claim whose scope is not registered for it.
// People are asked for consent before it gets any claim.
func TestClaimsAreRights(t *testing.T) {
	w := newWorld(t)
	const both = `{"userinfo":{"given_name":null,"email":null},"id_token":{"email":null}}`

	narrow, _ := w.client(func(n *idp.Client) { n.Scopes = []string{"openid", "profile"} })
	got := w.tokens(narrow, "claims", both)
	info, id := w.userinfo(text(got["access_token"])).json(t), idClaims(t, got)
	if info["email"] != nil || id["email"] != nil || info["given_name"] != "Ada" {
		t.Errorf("a client without the scope email got %v and %v, want no email", info, id)
	}

	// Claims also need consent, unless the client is first-party.
	c, _ := w.client(func(n *idp.Client) { n.FirstParty = false })
	b := w.browser()
	if got := b.consent(b.logIn(b.authorize(request(c)), email, secret), "allow"); got.param("code") == "" {
		t.Fatalf("allowing: %d %v, want a code", got.status, got.parameters())
	}
	if got := b.authorize(request(c, "claims", both, "prompt", "none")); got.param("error") != "consent_required" {
		t.Errorf("claims without consent: %d %v, want consent_required",
			got.status, got.parameters())
	}

	page := b.authorize(request(c, "claims", both))
	if !strings.Contains(page.body, "See your email address") || !strings.Contains(page.body, "See your profile") {
		t.Fatalf("the consent page does not list the claims: %d %s", page.status, page.body)
	}
	if got := b.consent(page, "allow"); got.param("code") == "" {
		t.Errorf("allowing: %d %v, want a code", got.status, got.parameters())
	}
}

// TestClaimsSub shows that a value of the claim sub restricts who may answer a request.
func TestClaimsSub(t *testing.T) {
	w := newWorld(t)
	bob := w.subscriber("bob@example.com")
	c, _ := w.client(nil)
	pairwise, _ := w.client(func(n *idp.Client) { n.SubjectType, n.AccessToken = idp.Pairwise, idp.JWTToken })
	b := w.browser()
	b.code(c)

	sub := func(c idp.Client, id string) string { return `"` + w.idp.Subjects.SubjectFor(c, id) + `"` }
	for _, tt := range []struct {
		name   string
		c      idp.Client
		claims string
		want   bool
	}{
		{"ada", c, `{"id_token":{"sub":{"value":` + sub(c, w.ada.ID) + `}}}`, true},
		{"ada at userinfo", c, `{"userinfo":{"sub":{"value":` + sub(c, w.ada.ID) + `}}}`, true},
		{"one of two", c, `{"id_token":{"sub":{"values":[` + sub(c, bob.ID) + `,` + sub(c, w.ada.ID) + `]}}}`, true},
		{"bob", c, `{"id_token":{"sub":{"value":` + sub(c, bob.ID) + `}}}`, false},
		{"ada and bob", c, `{"id_token":{"sub":{"value":` +
			sub(c, w.ada.ID) + `}},"userinfo":{"sub":{"value":` + sub(c, bob.ID) + `}}}`, false},
		{"a number", c, `{"id_token":{"sub":{"value":7}}}`, false},
		{"no subject", c, `{"id_token":{"sub":{"values":[]}}}`, false},
		{"any subject", c, `{"id_token":{"sub":{"essential":true}}}`, true},
		{"ada's pairwise sub", pairwise, `{"id_token":{"sub":{"value":` + sub(pairwise, w.ada.ID) + `}}}`, true},
		{"ada's sub of another sector", pairwise, `{"id_token":{"sub":{"value":` + sub(c, w.ada.ID) + `}}}`, false},
	} {
		got := b.authorize(request(tt.c, "prompt", "none", "claims", tt.claims))
		if (got.param("code") != "") != tt.want || (got.param("error") == "login_required") == tt.want {
			t.Errorf("%s: %v, want success %v", tt.name, got.parameters(), tt.want)
		}
	}

	hint := text(w.tokens(c)["id_token"])
	if got := b.authorize(request(c, "prompt", "none", "id_token_hint", hint,
		"claims", `{"id_token":{"sub":{"value":`+sub(c, bob.ID)+`}}}`)); got.param("error") != "login_required" {
		t.Errorf("ada's hint and bob's sub: %v, want login_required", got.parameters())
	}
}

// TestACR shows that a request fails if it has an essential acr that cannot be satisfied. If the
// acr is voluntary, the request succeeds, and the ID token reports the actual class.
func TestACR(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	for _, tt := range []struct {
		pair []string
		want string
	}{
		{nil, ""},
		{[]string{"acr_values", "1 2"}, ""},
		{[]string{"acr_values", "urn:mace:incommon:iap:silver"}, ""},
		{[]string{"claims", `{"id_token":{"acr":{"essential":true}}}`}, ""},
		{[]string{"claims", `{"id_token":{"acr":{"essential":true,"values":["2","1"]}}}`}, ""},
		{[]string{"claims", `{"id_token":{"acr":{"value":"2"}}}`}, ""},
		{[]string{"claims", `{"id_token":{"acr":{"essential":true,"value":"3"}}}`},
			"unmet_authentication_requirements"},
		{[]string{"claims", `{"id_token":{"acr":{"essential":true,"values":[]}}}`},
			"unmet_authentication_requirements"},
		{[]string{"claims", `{"id_token":{"acr":{"essential":true,"value":1}}}`},
			"unmet_authentication_requirements"},
		{[]string{"claims", `{`}, "invalid_request"},
		{[]string{"claims", `[]`}, "invalid_request"},
		{[]string{"claims", `{"id_token":{"acr":"1"}}`}, "invalid_request"},
	} {
		b := w.browser()
		got := b.authorize(request(c, tt.pair...))
		if tt.want != "" {
			if got.param("error") != tt.want || got.param("state") != "s" {
				t.Errorf("%v: %d %v, want %s", tt.pair, got.status, got.parameters(), tt.want)
			}
			continue
		}

		got = w.redeem(c, b.logIn(got, email, secret).param("code"))
		id := idClaims(t, got.json(t))
		if amr, _ := id["amr"].([]any); id["acr"] != "1" || len(amr) != 1 || amr[0] != "pwd" {
			t.Errorf("%v: the ID token has the acr %v and the amr %v, want 1 and pwd", tt.pair, id["acr"], id["amr"])
		}
	}
}

// TestDisplayHints shows that preferences for the look of a page never make a request fail.
func TestDisplayHints(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	for _, pair := range [][2]string{
		{"display", "page"}, {"display", "popup"}, {"display", "touch"}, {"display", "wap"}, {"display", "nonsense"},
		{"ui_locales", "se"}, {"ui_locales", "fr-CA fr en"}, {"claims_locales", "se"}, {"extra", "foobar"},
	} {
		got := w.browser().authorize(request(c, pair[0], pair[1]))
		if got.status != http.StatusOK || !strings.Contains(got.body, `id="login-submit"`) {
			t.Errorf("%v: %d %v, want the login page", pair, got.status, got.parameters())
		}
	}
}

// TestScopesAreClaims shows that the scopes of a token determine which claims are returned.
func TestScopesAreClaims(t *testing.T) {
	w := newWorld(t)
	said := fabric.StandardClaims{
		MiddleName: "King", Nickname: "Ada", PreferredUsername: "ada", ProfilePage: "https://example.com/ada",
		Picture: "https://example.com/ada.png",
		Website: "https://example.com", Gender: "female", Birthdate: "1815-12-10", Locale: "en-GB",
		PhoneNumber:         "+442071234567",
		PhoneNumberVerified: new(bool), Address: &fabric.Postal{Locality: "London", Country: "GB"},
	}

	last, zone := "Lovelace", "Europe/London"
	_, err := w.fabric.Subscribers.Update(t.Context(), w.project.ID, w.ada.ID,
		fabric.SubscriberInput{Claims: &said, Profile: fabric.Profile{LastName: &last, TimeZone: &zone}})
	must(t, err)

	c, _ := w.client(func(n *idp.Client) { n.Scopes = []string{"openid", "profile", "email", "address", "phone"} })
	for scope, want := range map[string]string{
		"openid": "sub",
		"openid profile": "birthdate family_name gender given_name locale middle_name name nickname " +
			"picture preferred_username profile sub updated_at website zoneinfo",
		"openid email": "email email_verified sub", "openid address": "address sub",
		"openid phone": "phone_number phone_number_verified sub",
	} {
		info := w.userinfo(text(w.tokens(c, "scope", scope)["access_token"])).json(t)
		if got := strings.Join(slices.Sorted(maps.Keys(info)), " "); got != want {
			t.Errorf("%s: userinfo has %s, want %s", scope, got, want)
		}
		if info["email_verified"] == true || info["phone_number_verified"] == true {
			t.Errorf("%s: %v is marked as verified", scope, info)
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
		scope string
		email bool
	}{{"openid email", true}, {"openid", false}} {
		next := w.refresh(c, text(got["refresh_token"]), "scope", tt.scope).json(t)
		info, id := w.userinfo(text(next["access_token"])).json(t), idClaims(t, next)
		if (info["email"] != nil) != tt.email || (id["email"] != nil) != tt.email || info["given_name"] != "Ada" {
			t.Errorf("%s: userinfo %v, ID token %v", tt.scope, info, id)
		}
		got = next
	}
}
