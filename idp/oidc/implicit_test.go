package oidc_test

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/selvage/selvage/idp"
	pages "github.com/selvage/selvage/internal/page"
)

// withIDToken registers a client for the implicit flow.
func withIDToken(n *idp.Client) { n.ResponseTypes = []string{"id_token"} }

// implicit returns the parameters of a valid request for an ID token without a code.
func implicit(c idp.Client, pairs ...string) url.Values {
	v := request(c, "response_type", "id_token", "nonce", "n", "scope", "openid profile",
		"code_challenge", "", "code_challenge_method", "")
	return with(v, pairs...)
}

// TestImplicit shows that a client registered for the implicit flow gets an ID token without a
// code. The token contains the claims of its scopes, and is sent in a fragment or a form.
func TestImplicit(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(withIDToken)
	for mode, sentTo := range map[string]string{ // if sentTo is "", the token is sent in a form
		"":          callback + "#",
		"fragment":  callback + "#",
		"form_post": "",
	} {
		name := "the mode " + mode
		b := w.newBrowser()
		page := b.authorize(implicit(c, "response_mode", mode, "claims", `{"id_token":{"email":null}}`))
		got := b.logIn(page, email, secret)
		wantSentTo(t, name, got, sentTo)
		if len(got.parameters()) != 4 {
			t.Fatalf("%s: the parameters are %v, want four", name, got.parameters())
		}
		wantParam(t, name, got, "state", "s")

		id := payload(t, got.param("id_token"))
		wantMembers(t, name, id, map[string]any{
			"sub":        w.ada.ID,
			"nonce":      "n",
			"given_name": "Ada",
			"email":      email,
			"at_hash":    nil,
		})
		if id["sid"] == nil {
			t.Errorf("%s: the ID token has no sid, want one", name)
		}

		// Claims of scopes that are not requested are not returned.
		narrow := b.authorize(implicit(c, "prompt", "none", "scope", "openid"))
		id = payload(t, narrow.param("id_token"))
		wantMembers(t, name+" with only openid", id, map[string]any{"given_name": nil})
	}
}

// TestImplicitErrors shows that unsafe and invalid requests are rejected.
func TestImplicitErrors(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(withIDToken)
	signedIn := w.newBrowser()
	signedIn.logIn(signedIn.authorize(implicit(c)), email, secret)

	code := signedIn.authorize(request(c))
	wantParam(t, "a code for a client without the grant", code, "error", "unauthorized_client")
	wantParam(t, "a code for a client without the grant", code, "state", "s")
	if code.location.Fragment != "" {
		t.Errorf("the error of a request for a code is sent to %v, want no fragment", code.location)
	}

	for _, tt := range []struct {
		name      string
		b         *browser
		params    url.Values
		wantError string
	}{
		{"no nonce", signedIn, implicit(c, "nonce", ""), "invalid_request"},
		{"the response_mode query", signedIn, implicit(c, "response_mode", "query"), "invalid_request"},
		{"no openid", signedIn, implicit(c, "scope", "profile"), "invalid_scope"},
		{
			"an ID token with an access token", signedIn, implicit(c, "response_type", "id_token token"),
			"unsupported_response_type",
		},
		{"an access token", signedIn, implicit(c, "response_type", "token"), "unsupported_response_type"},
		{"nobody is signed in", w.newBrowser(), implicit(c, "prompt", "none", "max_age", "0"), "login_required"},
	} {
		got := tt.b.authorize(tt.params)
		wantParam(t, tt.name, got, "error", tt.wantError)
		wantParam(t, tt.name, got, "id_token", "")
		wantParam(t, tt.name, got, "state", "s")
		if got.location == nil || got.location.Fragment == "" {
			t.Errorf("%s: status %d, sent to %v, want a fragment", tt.name, got.status, got.location)
		}
	}

	both, _ := w.client(func(n *idp.Client) { n.ResponseTypes = []string{"code", "id_token"} })
	if w.newBrowser().code(both) == "" {
		t.Error("a client of both flows gets no code")
	}
}

// TestImplicitIsAGrant shows that the login of an ID token without a code has a grant for the client,
// which does not include offline access. After the login has ended, the client gets no more ID tokens.
func TestImplicitIsAGrant(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(withIDToken)
	b := w.newBrowser()
	got := b.logIn(b.authorize(implicit(c, "scope", "openid offline_access")), email, secret)

	logins, err := w.rows.ListLogins(t.Context(), w.project.ID, w.ada.ID, pages.Query{Size: 10})
	must(t, err)
	if len(logins.Items) != 1 || len(logins.Items[0].Grants) != 1 {
		t.Fatalf("the logins are %+v, want one with one grant", logins.Items)
	}
	grant := logins.Items[0].Grants[0]
	if grant.ClientID != c.ID {
		t.Errorf("the grant belongs to the client %s, want %s", grant.ClientID, c.ID)
	}
	if scope := strings.Join(grant.Scope, " "); scope != "openid" {
		t.Errorf("the grant has the scope %s, want openid", scope)
	}
	if !grant.Revoked.IsZero() {
		t.Errorf("the grant was revoked at %v, want it in force", grant.Revoked)
	}

	sid := text(payload(t, got.param("id_token"))["sid"])
	must(t, w.idp.Logins.End(t.Context(), sid))
	silent := b.authorize(implicit(c, "prompt", "none"))
	wantParam(t, "after the login was ended", silent, "error", "login_required")
}

// TestGrantNames shows that grants have the same names in settings and errors as in the metadata,
// and that a client can have each of them.
func TestGrantNames(t *testing.T) {
	w := newWorld(t)
	var metadata struct {
		Grants []string `json:"grant_types_supported"`
	}
	body := w.newBrowser().get("/.well-known/openid-configuration").body
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
			t.Errorf("a client that is registered for %s has the grants %q, which do not permit it", name, c.Grants)
		}
		names = append(names, name)
	}

	slices.Sort(names)
	slices.Sort(metadata.Grants)
	if !slices.Equal(names, metadata.Grants) {
		t.Errorf("the metadata lists the grants %q, but clients can have %q", metadata.Grants, names)
	}

	_, _, err := w.idp.Clients.Create(t.Context(), idp.Client{
		ProjectID:    w.project.ID,
		Type:         idp.Web,
		RedirectURIs: []string{callback},
		Grants:       []string{"password"},
	})
	wantProblem(t, "an unknown grant", err, "grant")
	for _, name := range idp.GrantNames() {
		if !strings.Contains(text(err), name) {
			t.Errorf("the error for an unknown grant is %v, want it to name %s", err, name)
		}
	}
}
