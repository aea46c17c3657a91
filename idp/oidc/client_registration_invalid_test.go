package oidc_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestRegisterInvalid shows that an invalid member is refused, and that the error names this member.
func TestRegisterInvalid(t *testing.T) {
	w := newWorld(t)
	token := w.initialToken()
	for code, members := range map[string][]struct {
		name  string
		value any
	}{
		"invalid_redirect_uri": {
			{"redirect_uris", []string{}},
			{"redirect_uris", "https://a.example"},
			{"redirect_uris", []string{callback + "#x"}},
			{"redirect_uris", []string{"http://a.example"}},
			{"redirect_uris", []string{"javascript:alert(1)"}},
			{"redirect_uris", []string{"com.example.app:/cb"}},
			{"redirect_uris", []string{"https://*.a.example"}},
			{"redirect_uris", slices.Repeat([]string{callback}, 51)},
		},
		"invalid_client_metadata": {
			{"client_name", strings.Repeat("x", 101)},
			{"client_name", "a\nb"},
			{"client_name", 7},
			{"client_name", "Acme\u202eapp"},
			{"client_name", "Acme\u200b"},
			{"client_name", "Acm\u0435"},
			{"application_type", "desktop"},
			{"token_endpoint_auth_method", "client_secret_jwt"},
			{"token_endpoint_auth_signing_alg", "none"},
			{"grant_types", []string{"password"}},
			{"grant_types", []string{"client_credentials"}},
			{"grant_types", []string{"authorization_code", "implicit"}},
			{"response_types", []string{"token"}},
			{"response_types", []string{"none"}},
			{"scope", "Voice Management"},
			{"id_token_signed_response_alg", "none"},
			{"userinfo_signed_response_alg", "HS256"},
			{"request_object_signing_alg", "none"},
			{"request_uris", []string{"https://a.example/r"}},
			{"subject_type", "mine"},
			{"sector_identifier_uri", "http://a.example/s"},
			{"jwks", map[string]any{}},
			{"jwks_uri", "http://a.example/jwks"},
			{"default_max_age", -1},
			{"default_max_age", "1"},
			{"default_acr_values", slices.Repeat([]string{"1"}, 11)},
			{"contacts", []string{"a\x00"}},
			{"initiate_login_uri", "http://localhost/start"},
			{"initiate_login_uri", "javascript:alert(1)"},
			{"logo_uri", "javascript:alert(1)"},
			{"policy_uri", "data:text/html,x"},
			{"tos_uri", "https://u@a.example"},
			{"client_uri", "x"},
			{"post_logout_redirect_uris", []string{"javascript:alert(1)"}},
			{"frontchannel_logout_uri", "https://other.example/out"},
			{"software_id", strings.Repeat("x", 256)},
		},
	} {
		for _, member := range members {
			name := fmt.Sprintf("%s = %.60v", member.name, member.value)
			got := w.send("POST", registerPath, token, appMetadata(metadata{member.name: member.value}))
			wantStatus(t, name, got, http.StatusBadRequest)
			wantError(t, name, got, code)
			wantDescription(t, name, got, member.name)
		}
	}

	got := w.send("POST", registerPath, token, appMetadata(metadata{
		"response_types": []string{"code id_token"},
		"grant_types":    []string{"authorization_code"},
	}))
	wantDescription(t, "a response type without its grant type", got, "grant_types")
}

// TestRegisterImplicit shows that a web client whose responses contain tokens needs redirect URIs
// with https that are not on localhost. Other clients may have redirect URIs with http and on localhost.
func TestRegisterImplicit(t *testing.T) {
	w := newWorld(t)
	token := w.initialToken()
	implicit := metadata{"response_types": []string{"id_token"}}
	native := metadata{"response_types": []string{"id_token"}, "application_type": "native"}

	for _, tt := range []struct {
		uri        string
		more       metadata
		wantStatus int
	}{
		{uri: callback, more: implicit, wantStatus: http.StatusCreated},
		{uri: "http://127.0.0.1:3000/cb", more: implicit, wantStatus: http.StatusBadRequest},
		{uri: "https://localhost:3000/cb", more: implicit, wantStatus: http.StatusBadRequest},
		{uri: "https://LOCALHOST/cb", more: implicit, wantStatus: http.StatusBadRequest},
		{uri: "http://localhost:3000/cb", more: native, wantStatus: http.StatusCreated},
		{uri: "http://localhost:3000/cb", more: nil, wantStatus: http.StatusCreated},
	} {
		name := fmt.Sprintf("%s with %v", tt.uri, tt.more)
		m := appMetadata(tt.more)
		m["redirect_uris"] = []string{tt.uri}
		got := w.send("POST", registerPath, token, m)
		wantStatus(t, name, got, tt.wantStatus)
		if tt.wantStatus == http.StatusBadRequest {
			wantError(t, name, got, "invalid_redirect_uri")
		}
	}
}

// wantDescription checks that the error_description in a response names a member.
func wantDescription(t *testing.T, name string, got reply, member string) {
	t.Helper()
	if description := text(got.json(t)["error_description"]); !strings.Contains(description, member) {
		t.Errorf("%s: the description is %q, want it to contain %s", name, description, member)
	}
}

// TestRegisterHostile shows that everything that a client registers appears in pages and headers
// only as text. Oversized and unreadable bodies are refused.
func TestRegisterHostile(t *testing.T) {
	w := newWorld(t)
	token := w.initialToken()
	const name = `"><script>alert(1)</script>`
	created := w.registerClient(token, appMetadata(metadata{
		"client_name":                name,
		"token_endpoint_auth_method": "none",
		"policy_uri":                 `https://a.example/"onmouseover="alert(1)`,
		"tos_uri":                    "https://a.example/<b>",
	}))
	page := w.newBrowser().authorize(request(w.clientOf(created)))
	wantText(t, "the login page", page, "&lt;script&gt;")
	wantNoText(t, "the login page", page, "<script>alert", `"onmouseover`, "<b>")

	isForbidden := func(r rune) bool { return strings.ContainsRune("\"\\\r\n", r) || r > '~' }
	for _, uri := range []string{"https://a.example/\r\nX: y", "https://ä.example/\"", `https://a.example/\`} {
		got := w.send("POST", registerPath, token, appMetadata(metadata{"redirect_uris": []string{uri}}))
		wantStatus(t, "registering "+uri, got, http.StatusBadRequest)
		description := text(got.json(t)["error_description"])
		if strings.ContainsFunc(description, isForbidden) {
			t.Errorf("the description of %q is %q, want printable ASCII without quotes", uri, description)
		}
	}

	long := `{"client_name":"` + strings.Repeat("x", 128<<10) + `"}`
	for name, tt := range map[string]struct {
		body       string
		wantStatus int
	}{
		"a long body":       {long, http.StatusRequestEntityTooLarge},
		"an array":          {`[]`, http.StatusBadRequest},
		"half an object":    {`{`, http.StatusBadRequest},
		"a repeated member": {`{"a":1,"a":2}`, http.StatusBadRequest},
		"a trailing letter": {`{}x`, http.StatusBadRequest},
		"half a surrogate":  {`{"redirect_uris":["\ud800"]}`, http.StatusBadRequest},
		"an empty body":     {"", http.StatusBadRequest},
	} {
		wantStatus(t, name, w.send("POST", registerPath, token, tt.body), tt.wantStatus)
	}

	req, err := http.NewRequest("POST", w.url+registerPath, strings.NewReader("client_name=x"))
	must(t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Authorization", "Bearer "+token)
	wantStatus(t, "a form instead of JSON", w.newBrowser().do(req), http.StatusUnsupportedMediaType)

	wantStatus(t, "GET", w.newBrowser().get(registerPath), http.StatusMethodNotAllowed)
}
