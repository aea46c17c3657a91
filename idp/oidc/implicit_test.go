package oidc_test

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

func withIDToken(n *idp.Client) { n.ResponseTypes = []string{"id_token"} }

// implicit returns the parameters of a valid request for an ID token without a code.
func implicit(c idp.Client, pairs ...string) url.Values {
	v := request(c, "response_type", "id_token", "nonce", "n", "code_challenge", "", "code_challenge_method",
		"", "scope", "openid profile")
	return with(v, pairs...)
}

// TestImplicit shows that a client registered for the implicit flow gets an ID token without a
// code. The token contains the claims of its scopes, and is sent in a fragment or a form.
func TestImplicit(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(withIDToken)
	for mode, fragment := range map[string]bool{"": true, "fragment": true, "form_post": false} {
		b := w.browser()
		got := b.logIn(b.authorize(implicit(
			c, "response_mode", mode, "claims", `{"id_token":{"email":null}}`)), email, secret)
		if fragment != (got.location != nil && strings.HasPrefix(got.location.String(), callback+"#")) ||
			len(got.parameters()) != 4 || got.param("state") != "s" {
			t.Fatalf("%q: %d to %v with %v, want four parameters", mode, got.status, got.location, got.parameters())
		}

		id := payload(t, got.param("id_token"))
		if id["sub"] != w.ada.ID || id["nonce"] != "n" || id["given_name"] != "Ada" || id["email"] != email ||
			id["at_hash"] != nil || id["sid"] == nil {
			t.Errorf("%q: ID token %v, want the claims of the request", mode, id)
		}

		if again := b.authorize(implicit(c, "prompt", "none", "scope", "openid")); payload(t,
			again.param("id_token"))["given_name"] != nil {
			t.Errorf("%q: got %v, want no claim of a scope that was not requested", mode, again.parameters())
		}
	}
}

// TestImplicitErrors shows that unsafe requests are rejected.
func TestImplicitErrors(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(withIDToken)
	b := w.browser()
	b.logIn(b.authorize(implicit(c)), email, secret)

	for _, tt := range []struct {
		name string
		v    url.Values
		want string
	}{
		{"no nonce", implicit(c, "nonce", ""), "invalid_request"},
		{"response_mode query", implicit(c, "response_mode", "query"), "invalid_request"},
		{"without openid", implicit(c, "scope", "profile"), "invalid_scope"},
		{"a code, not registered", request(c), "unauthorized_client"},
		{"with an access token, not registered", implicit(c, "response_type", "id_token token"),
			"unsupported_response_type"},
		{"an access token", implicit(c, "response_type", "token"), "unsupported_response_type"},
		{"prompt none without a login", implicit(c, "prompt", "none", "max_age", "0"), "login_required"},
	} {
		if tt.name == "prompt none without a login" {
			b = w.browser()
		}

		got := b.authorize(tt.v)
		if got.location == nil || got.param("error") != tt.want || got.param("id_token") != "" ||
			got.param("state") != "s" {
			t.Errorf("%s: %d to %v, want %s", tt.name, got.status, got.location, tt.want)
		}
		if want := tt.v.Get("response_type") != "code"; (got.location.Fragment != "") != want {
			t.Errorf("%s: sent to %v, want in the fragment = %v", tt.name, got.location, want)
		}
	}

	both, _ := w.client(func(n *idp.Client) { n.ResponseTypes = []string{"code", "id_token"} })
	if w.browser().code(both) == "" {
		t.Error("a client of both flows gets no code")
	}
}

// TestImplicitIsAGrant shows that an app with an ID token is among the subscriber's apps. Its grant
// does not include offline access.
func TestImplicitIsAGrant(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(withIDToken)
	b := w.browser()
	got := b.logIn(b.authorize(implicit(c, "scope", "openid offline_access")), email, secret)

	p, err := w.rows.ListLogins(t.Context(), w.project.ID, w.ada.ID, page.Query{Size: 10})
	must(t, err)
	if len(p.Items) != 1 || len(p.Items[0].Grants) != 1 {
		t.Fatalf("the logins are %+v, want one with one grant", p.Items)
	}
	if g := p.Items[0].Grants[0]; g.ClientID != c.ID || strings.Join(g.Scope, " ") != "openid" ||
		!g.Revoked.IsZero() {
		t.Errorf("the grant is %+v, want openid alone, not revoked", g)
	}

	sid := text(payload(t, got.param("id_token"))["sid"])
	must(t, w.idp.Logins.End(t.Context(), sid))
	if got := b.authorize(implicit(c, "prompt", "none")); got.param("error") != "login_required" {
		t.Errorf("after the login was ended: %v, want login_required", got.parameters())
	}
}

// TestGrantNames shows that grants have the same names in settings and errors as in the metadata,
// and that a client can have each of them.
func TestGrantNames(t *testing.T) {
	w := newWorld(t)
	var metadata struct {
		Grants []string `json:"grant_types_supported"`
	}
	body := w.browser().get("/.well-known/openid-configuration").body
	must(t, json.Unmarshal([]byte(body), &metadata))

	var names []string
	for _, name := range idp.GrantNames() {
		c, _ := w.client(func(n *idp.Client) {
			n.Type, n.Grants = idp.Web, []string{idp.GrantCode, name}
			if name == idp.GrantImplicit {
				n.ResponseTypes = []string{"code", "id_token"}
			}
		})
		if name == idp.ShortDevice {
			name = idp.GrantDevice
		}
		if !c.May(name) && name != idp.GrantImplicit {
			t.Errorf("a client that is registered for %s has %q, want it included", name, c.Grants)
		}
		names = append(names, name)
	}

	slices.Sort(names)
	slices.Sort(metadata.Grants)
	if !slices.Equal(names, metadata.Grants) {
		t.Errorf("the metadata has %q, the settings %q, want the same", metadata.Grants, names)
	}

	_, _, err := w.idp.Clients.Create(t.Context(), idp.Client{ProjectID: w.project.ID, Type: idp.Web,
		RedirectURIs: []string{callback}, Grants: []string{"password"}})
	for _, name := range idp.GrantNames() {
		if p := problem.First(err); p == nil || p.Param != "grant" || !strings.Contains(p.Message, name) {
			t.Errorf("the error for an unknown grant does not name %s: %v", name, err)
		}
	}
}
