package oidc_test

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"github.com/selvage/selvage/idp"
)

// TestResource shows that a service can get a token for each of its registered resources or for the
// issuer, but only for one at a time (RFC 8707).
func TestResource(t *testing.T) {
	w := newWorld(t)
	const billing = "https://billing.example/"
	c, clientSecret := w.client(func(n *idp.Client) {
		n.Type, n.AuthMethod, n.RedirectURIs = idp.Service, idp.AuthPost, nil
		n.Scopes, n.Resources = []string{"Voice"}, []string{billing}
	})

	send := func(path string, form url.Values) reply {
		form.Set("client_id", c.ID)
		form.Set("client_secret", clientSecret)
		return w.newBrowser().post(path, form)
	}
	ask := func(resources ...string) reply {
		return send("/oauth/token", url.Values{"grant_type": {"client_credentials"}, "resource": resources})
	}

	for _, tt := range []struct {
		resources    []string
		wantAudience string
		wantOpened   bool // whether the issuer accepts the token
	}{
		{resources: nil, wantAudience: w.url + "/", wantOpened: true},
		{resources: []string{w.url + "/"}, wantAudience: w.url + "/", wantOpened: true},
		{resources: []string{billing}, wantAudience: billing, wantOpened: false},
	} {
		name := fmt.Sprint("a token for ", tt.resources)
		got := ask(tt.resources...)
		if got.status != http.StatusOK {
			t.Errorf("%s: status %d, want 200: %s", name, got.status, got.body)
			continue
		}

		// The audience is the requested resource, and the issuer accepts only tokens for itself.
		token := text(got.json(t)["access_token"])
		if audience := payload(t, token)["aud"]; audience != tt.wantAudience {
			t.Errorf("%s has the audience %v, want %s", name, audience, tt.wantAudience)
		}
		_, err := w.idp.Tokens.Open(t.Context(), token)
		if opened := err == nil; opened != tt.wantOpened {
			t.Errorf("%s is accepted: %t, want %t; the error is %v", name, opened, tt.wantOpened, err)
		}

		live := send("/oauth/introspect", url.Values{"token": {token}}).json(t)
		if live["active"] != true {
			t.Errorf("introspection of %s: active %v, want true", name, live["active"])
		}
		if live["aud"] != tt.wantAudience {
			t.Errorf("introspection of %s: aud %v, want %s", name, live["aud"], tt.wantAudience)
		}

		wantStatus(t, "revoking "+name, send("/oauth/revoke", url.Values{"token": {token}}), http.StatusOK)
		revoked := send("/oauth/introspect", url.Values{"token": {token}}).json(t)
		if revoked["active"] != false {
			t.Errorf("introspection of %s after its revocation: active %v, want false", name, revoked["active"])
		}
	}

	for _, resources := range [][]string{
		{"https://billing.example"}, {"https://other.example/"}, {""}, {billing, billing},
		{billing, "https://other.example/"},
	} {
		got := ask(resources...)
		wantStatus(t, fmt.Sprint("a token for ", resources), got, http.StatusBadRequest)
		wantError(t, fmt.Sprint("a token for ", resources), got, "invalid_target")
	}
}

// TestResourceOfGrant shows that a subscriber's access token has a single audience. This audience
// must have been granted.
func TestResourceOfGrant(t *testing.T) {
	w := newWorld(t)
	const billing, mail = "https://billing.example/", "https://mail.example/"
	issuer := w.url + "/"
	c, _ := w.client(func(n *idp.Client) { n.AccessToken, n.Resources = idp.JWTToken, []string{billing, mail} })

	// audience returns the audience of the token in a response, or the error code.
	audience := func(got reply) any {
		if got.status != http.StatusOK {
			return got.json(t)["error"]
		}
		return payload(t, text(got.json(t)["access_token"]))["aud"]
	}

	b := w.newBrowser()
	b.code(c)
	// grant returns a code for resources. redeem requests a token for resources with a code.
	grant := func(resources ...string) string {
		v := request(c, "scope", "openid offline_access")
		v["resource"] = resources
		return b.authorize(v).param("code")
	}
	redeem := func(code string, resources ...string) reply {
		form := redemption(c, code)
		form["resource"] = resources
		return w.newBrowser().post("/oauth/token", form)
	}

	for _, tt := range []struct {
		granted, asked []string
		want           string
	}{
		{granted: nil, asked: nil, want: issuer},
		{granted: nil, asked: []string{issuer}, want: issuer},
		{granted: nil, asked: []string{billing}, want: "invalid_target"},
		{granted: []string{billing}, asked: nil, want: billing},
		{granted: []string{billing}, asked: []string{billing}, want: billing},
		{granted: []string{billing}, asked: []string{mail}, want: "invalid_target"},
		{granted: []string{billing}, asked: []string{issuer}, want: "invalid_target"},
		{granted: []string{billing, mail}, asked: nil, want: "invalid_target"},
		{granted: []string{billing, mail}, asked: []string{mail}, want: mail},
		{granted: []string{billing, issuer}, asked: []string{issuer}, want: issuer},
	} {
		if got := audience(redeem(grant(tt.granted...), tt.asked...)); got != tt.want {
			t.Errorf("granted %v, requested %v: the token is for %v, want %s", tt.granted, tt.asked, got, tt.want)
		}
	}

	// A refresh token may be used for any of the granted resources.
	refresh := text(redeem(grant(billing, mail), mail).json(t)["refresh_token"])
	for _, resource := range []string{issuer, "https://other.example/"} {
		got := w.refresh(c, refresh, "resource", resource)
		wantError(t, "a refresh for "+resource, got, "invalid_target")
	}
	for _, resource := range []string{billing, mail} {
		got := w.refresh(c, refresh, "resource", resource)
		if aud := audience(got); aud != resource {
			t.Errorf("a refresh for %s: the token is for %v, want the resource", resource, aud)
		}
		refresh = text(got.json(t)["refresh_token"])
	}

	unregistered := b.authorize(request(c, "resource", "https://other.example/"))
	wantParam(t, "an unregistered resource", unregistered, "error", "invalid_target")
}

// TestResourceIsARight shows that consent to scopes does not include consent to a resource.
func TestResourceIsARight(t *testing.T) {
	w := newWorld(t)
	const billing = "https://billing.example/"
	c, _ := w.client(func(n *idp.Client) {
		n.AccessToken, n.Resources, n.FirstParty = idp.JWTToken, []string{billing}, false
	})

	b := w.newBrowser()
	b.consent(b.logIn(b.authorize(request(c)), email, secret), "allow")
	page := b.authorize(request(c, "resource", billing))
	wantText(t, "a request for a resource", page, "Act on your behalf at "+billing)

	wantCode(t, "consenting to the resource", b.consent(page, "allow"))
	wantCode(t, "after consenting to the resource", b.authorize(request(c, "resource", billing)))
}
