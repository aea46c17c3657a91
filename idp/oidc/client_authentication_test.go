package oidc_test

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/selvage/selvage/idp"
)

// basic returns an Authorization header for HTTP Basic (RFC 6749, section 2.3.1).
func basic(id, secret string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(url.QueryEscape(id)+":"+url.QueryEscape(secret)))
}

// TestClientAuthentication shows how clients authenticate at the token endpoint, and which
// errors they get.
func TestClientAuthentication(t *testing.T) {
	w := newWorld(t)
	service := func(method idp.AuthMethod) (idp.Client, string) {
		return w.client(func(n *idp.Client) {
			n.Type, n.AuthMethod = idp.Service, method
			n.RedirectURIs, n.Scopes = nil, []string{"voice"}
		})
	}

	basicClient, basicSecret := service(idp.AuthBasic)
	postClient, postSecret := service(idp.AuthPost)
	spa, _ := w.client(nil)

	// grant returns the form of a token request. asPost adds the credentials of postClient to it.
	grant := func(pairs ...string) url.Values {
		return with(url.Values{"grant_type": {"client_credentials"}}, pairs...)
	}
	asPost := func(pairs ...string) url.Values {
		return with(grant("client_id", postClient.ID, "client_secret", postSecret), pairs...)
	}
	authorization := func(value string) []string { return []string{"Authorization", value} }
	encoded := func(text string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(text)) }
	valid := basic(basicClient.ID, basicSecret)

	const grantTypes = "urn:ietf:params:oauth:grant-type:"
	assertion := grant("client_id", postClient.ID, "client_assertion", "x.y.z",
		"client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
	otherGrant := asPost("grant_type", "authorization_code", "code", "x", "redirect_uri", "y")
	repeated := url.Values{"grant_type": {"client_credentials", "client_credentials"}}

	for _, tt := range []struct {
		name      string
		headers   []string
		form      url.Values
		wantError string // "" means success
	}{
		{"basic", authorization(valid), grant(), ""},
		{"basic in lower case", authorization("b" + valid[1:]), grant(), ""},
		{"basic and the same client_id", authorization(valid), grant("client_id", basicClient.ID), ""},
		{"the other method without a value", authorization(valid), grant("client_secret", ""), ""},
		{"post", nil, asPost(), ""},

		{"wrong secret", authorization(basic(basicClient.ID, "wrong")), grant(), "invalid_client"},
		{"unknown client", authorization(basic("unknown", basicSecret)), grant(), "invalid_client"},
		{"another client's secret", authorization(basic(basicClient.ID, postSecret)), grant(), "invalid_client"},
		{"basic for post", authorization(basic(postClient.ID, postSecret)), grant(), "invalid_client"},
		{"post for basic", nil, grant("client_id", basicClient.ID, "client_secret", basicSecret), "invalid_client"},
		{"no secret", nil, grant("client_id", postClient.ID), "invalid_client"},
		{"no client_id", nil, grant(), "invalid_client"},
		{"two headers", slices.Repeat(authorization(valid), 2), grant(), "invalid_client"},
		{"bad base64", authorization("Basic !!!"), grant(), "invalid_client"},
		{"no colon", authorization(encoded("abc")), grant(), "invalid_client"},
		{"bad escape", authorization(encoded("%zz:%zz")), grant(), "invalid_client"},
		{"assertion", nil, assertion, "invalid_client"},
		{"a public client with a secret", nil, grant("client_id", spa.ID, "client_secret", "x"), "invalid_client"},

		{"a public client", nil, grant("client_id", spa.ID), "unauthorized_client"},
		{"a grant of a different type", nil, otherGrant, "unauthorized_client"},
		{"token exchange", nil, asPost("grant_type", grantTypes+"token-exchange"), "unauthorized_client"},
		{"password grant", nil, asPost("grant_type", "password"), "unsupported_grant_type"},
		{
			"jwt-bearer", nil,
			grant("client_id", postClient.ID, "grant_type", grantTypes+"jwt-bearer", "assertion", "x"),
			"unsupported_grant_type",
		},

		{"two methods", authorization(valid), grant("client_secret", basicSecret), "invalid_request"},
		{"two clients", authorization(valid), grant("client_id", postClient.ID), "invalid_request"},
		{"no grant_type", nil, asPost("grant_type", ""), "invalid_request"},
		{"a repeated parameter", nil, repeated, "invalid_request"},
		{"scope not registered", nil, asPost("scope", "Fax"), "invalid_scope"},
		{"openid", nil, asPost("scope", "openid"), "invalid_scope"},
	} {
		got := w.post("/oauth/token", tt.form, tt.headers...)
		wantHeader(t, tt.name, got, "Cache-Control", "no-store")
		if kind := got.header.Get("Content-Type"); !strings.HasPrefix(kind, "application/json") {
			t.Errorf("%s: Content-Type %q, want application/json", tt.name, kind)
		}

		switch tt.wantError {
		case "":
			wantStatus(t, tt.name, got, http.StatusOK)
			wantHeader(t, tt.name, got, "WWW-Authenticate", "")
			continue
		case "invalid_client":
			wantStatus(t, tt.name, got, http.StatusUnauthorized)
		default:
			wantStatus(t, tt.name, got, http.StatusBadRequest)
		}
		wantError(t, tt.name, got, tt.wantError)

		// Only a client that used the header, or did not identify itself, gets a challenge (RFC
		// 6749, section 5.2).
		mayChallenge := len(tt.headers) > 0 || !tt.form.Has("client_id")
		wantChallenge := tt.wantError == "invalid_client" && mayChallenge
		challenge := got.header.Get("WWW-Authenticate")
		if hasChallenge := challenge != ""; hasChallenge != wantChallenge {
			t.Errorf("%s: WWW-Authenticate %q, want a challenge: %t", tt.name, challenge, wantChallenge)
		}
	}

	tokens := w.post("/oauth/token", grant(), "Authorization", valid).json(t)
	wantMembers(t, "the token response", tokens, map[string]any{"scope": "Voice", "refresh_token": nil})
	access, err := w.idp.Tokens.Open(t.Context(), text(tokens["access_token"]))
	must(t, err)
	if access.ClientID != basicClient.ID {
		t.Errorf("the token belongs to the client %s, want %s", access.ClientID, basicClient.ID)
	}
	if access.SubscriberID != "" {
		t.Errorf("the token belongs to the subscriber %s, want none", access.SubscriberID)
	}
}
