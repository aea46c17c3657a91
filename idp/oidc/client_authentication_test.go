package oidc_test

import (
	"encoding/base64"
	"net/url"
	"strings"
	"testing"

	"github.com/selvage/selvage/idp"
)

func basic(id, secret string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(url.QueryEscape(id)+":"+url.QueryEscape(secret)))
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
		{"a grant of a different type", cc("client_id", p.ID, "client_secret", pSecret, "grant_type",
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
			t.Errorf("%s: headers %v, want JSON that is not cached", tt.name, got.header)
		}
		// Only a client that used the header, or did not identify itself, gets a challenge (RFC
		// 6749, section 5.2).
		if want := got.status == 401 && (len(tt.headers) > 0 ||
			!tt.form.Has("client_id")); want != (got.header.Get("WWW-Authenticate") != "") {
			t.Errorf("%s: %d with WWW-Authenticate %q, want a challenge = %v",
				tt.name, got.status, got.header.Get("WWW-Authenticate"), want)
		}
	}

	set := w.post("/oauth/token", cc(), "Authorization", basic(b.ID, bSecret)).json(t)
	access, err := w.idp.Tokens.Open(t.Context(), text(set["access_token"]))
	if err != nil || access.ClientID != b.ID || access.SubscriberID != "" || set["scope"] != "Voice" ||
		set["refresh_token"] != nil {
		t.Errorf("client_credentials returns %v: %+v, %v, want the service's token", set, access, err)
	}
}
