package oidc_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/selvage/selvage/idp"
)

// TestResource shows that a service can get a token for each of its registered resources or for the
// issuer, but only for one at a time (RFC 8707).
func TestResource(t *testing.T) {
	w := newWorld(t)
	const billing = "https://billing.example/"
	c, secret := w.client(func(n *idp.Client) {
		n.Type, n.AuthMethod, n.RedirectURIs = idp.Service, idp.AuthPost, nil
		n.Scopes, n.Resources = []string{"Voice"}, []string{billing}
	})

	ask := func(resources ...string) reply {
		return w.browser().post("/oauth/token", url.Values{
			"grant_type": {"client_credentials"}, "client_id": {c.ID}, "client_secret": {secret},
			"resource": resources,
		})
	}
	about := func(path, token string) reply {
		return w.browser().post(path, url.Values{"client_id": {c.ID}, "client_secret": {secret}, "token": {token}})
	}

	for _, tt := range []struct {
		audience string
		asked    []string
		ours     bool
	}{{w.url + "/", nil, true}, {w.url + "/", []string{w.url + "/"}, true}, {billing, []string{billing}, false}} {
		got := ask(tt.asked...)
		if got.status != http.StatusOK {
			t.Errorf("resource %v: %d %s, want 200", tt.asked, got.status, got.body)
			continue
		}

		// The audience is the requested resource, and the issuer accepts only tokens for itself.
		token := text(got.json(t)["access_token"])
		if aud := payload(t, token)["aud"]; aud != tt.audience {
			t.Errorf("resource %v: the token is for %v, want %s", tt.asked, aud, tt.audience)
		}
		if _, err := w.idp.Tokens.Open(t.Context(), token); (err == nil) != tt.ours {
			t.Errorf("resource %v: the issuer accepts the token: %v, want %v", tt.asked, err, tt.ours)
		}

		if in := about("/oauth/introspect", token).json(t); in["active"] != true || in["aud"] != tt.audience {
			t.Errorf("resource %v: introspection %v, want an active token for this audience", tt.asked, in)
		}
		if out := about("/oauth/revoke", token); out.status != http.StatusOK ||
			about("/oauth/introspect", token).json(t)["active"] != false {
			t.Errorf("resource %v: revocation %d, want 200 and an inactive token", tt.asked, out.status)
		}
	}

	for _, asked := range [][]string{{"https://billing.example"}, {"https://other.example/"}, {""},
		{billing, billing}, {billing, "https://other.example/"}} {
		if got := ask(asked...); got.status != http.StatusBadRequest || got.json(t)["error"] != "invalid_target" {
			t.Errorf("resource %q: %d %s, want invalid_target", asked, got.status, got.body)
		}
	}
}

// TestResourceOfGrant shows that a subscriber's access token has a single audience. This audience
// must have been granted.
func TestResourceOfGrant(t *testing.T) {
	w := newWorld(t)
	const billing, mail = "https://billing.example/", "https://mail.example/"
	us := w.url + "/"
	c, _ := w.client(func(n *idp.Client) { n.AccessToken, n.Resources = idp.JWTToken, []string{billing, mail} })

	// audience returns the audience of the token in a response, or the error code.
	audience := func(r reply) any {
		if r.status != http.StatusOK {
			return r.json(t)["error"]
		}
		return payload(t, text(r.json(t)["access_token"]))["aud"]
	}

	b := w.browser()
	b.code(c)
	grant := func(resources ...string) string {
		v := request(c, "scope", "openid offline_access")
		v["resource"] = resources
		return b.authorize(v).param("code")
	}
	form := func(resources ...string) url.Values { return url.Values{"resource": resources} }

	// Each case redeems its own code.
	for _, tt := range []struct {
		granted, asked []string
		want           string
	}{
		{nil, nil, us}, {nil, []string{us}, us}, {nil, []string{billing}, "invalid_target"},
		{[]string{billing}, nil, billing}, {[]string{billing}, []string{billing}, billing},
		{[]string{billing}, []string{mail}, "invalid_target"},
		{[]string{billing}, []string{us}, "invalid_target"}, {[]string{billing, mail}, nil, "invalid_target"},
		{[]string{billing, mail}, []string{mail}, mail},
		{[]string{billing, us}, []string{us}, us},
	} {
		code := grant(tt.granted...)
		if got := audience(w.redeemWith(c, code, form(tt.asked...))); got != tt.want {
			t.Errorf("granted %v, requested %v: the token is for %v, want %s", tt.granted, tt.asked, got, tt.want)
		}
	}

	// A refresh token may be used for any of the granted resources.
	refresh := text(w.redeemWith(c, grant(billing, mail), form(mail)).json(t)["refresh_token"])
	for _, asked := range []string{us, "https://other.example/", billing, mail} {
		got := w.browser().post("/oauth/token",
			url.Values{"grant_type": {"refresh_token"}, "client_id": {c.ID}, "refresh_token": {refresh},
				"resource": {asked}})
		want := any(asked)
		if asked != billing && asked != mail {
			want = "invalid_target"
		} else {
			refresh = text(got.json(t)["refresh_token"])
		}
		if audience(got) != want {
			t.Errorf("a refresh for %s: %d %s, want %s", asked, got.status, got.body, want)
		}
	}

	if got := b.authorize(with(request(c), "resource",
		"https://other.example/")); got.param("error") != "invalid_target" {
		t.Errorf("an unregistered resource: %d %v, want invalid_target",
			got.status, got.parameters())
	}
}

// TestResourceIsARight shows that consent to scopes does not include consent to a resource.
func TestResourceIsARight(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(func(n *idp.Client) {
		n.AccessToken, n.Resources, n.FirstParty = idp.JWTToken, []string{"https://billing.example/"}, false
	})

	b := w.browser()
	b.consent(b.logIn(b.authorize(request(c)), email, secret), "allow")
	page := b.authorize(request(c, "resource", "https://billing.example/"))
	if !strings.Contains(page.body, "Act on your behalf at https://billing.example/") {
		t.Errorf("the page does not ask for consent to the resource: %d %v %s", page.status, page.location, page.body)
	}

	if b.consent(page, "allow").param("code") == "" ||
		b.authorize(request(c, "resource", "https://billing.example/")).param("code") == "" {
		t.Error("a subscriber who consented to the resource gets no code")
	}
}
