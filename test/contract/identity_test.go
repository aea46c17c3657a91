package contract

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// TestIdentity shows that every operation of the identity provider returns all its documented
// statuses.
func TestIdentity(t *testing.T) {
	w := newWorld(t)
	c := w.NewClient(t, "spa", "--first-party", "--post-logout-redirect-uri", harness.RedirectURI)
	sub := w.NewSubscriber(t)
	tokens, _ := c.SignIn(t, sub, "openid offline_access")
	ended, _ := c.SignIn(t, sub, "openid")
	device := w.NewClient(t, "native", "--grant", "device_code")
	machine := w.NewClient(t, "service", "--scope", "Voice")
	web := w.NewClient(t, "web")

	request := func(pairs ...string) string { return with(c.NewFlow("openid").Query, pairs...).Encode() }
	big := strings.Repeat("x", 64<<10)
	basic := harness.Basic(machine.ID, machine.Secret)
	form := func(pairs ...string) harness.Option { return harness.Form(with(url.Values{}, pairs...)) }
	text := harness.Body("text/plain", []byte("x"))
	etag := func(path string) harness.Option {
		return harness.Header("If-None-Match", w.Get(t, path).Want(t, 200).Header.Get("ETag"))
	}

	// A try is a request and the status that it must get.
	type try struct {
		status int
		query  string
		opts   []harness.Option
	}
	authenticated := func(field string) []try {
		return []try{
			{200, "", []harness.Option{basic, form(field, "x")}},
			{400, "a=b", []harness.Option{basic, form(field, "x")}},
			{401, "", []harness.Option{harness.Basic(machine.ID, "wrong"), form(field, "x")}},
			{413, "", []harness.Option{basic, form(field, big)}}, {415, "", []harness.Option{basic, text}},
		}
	}

	userinfo := []try{
		{200, "", []harness.Option{harness.Bearer(tokens.AccessToken)}}, {401, "", nil},
		{401, "", []harness.Option{harness.Bearer("made-up")}},
		{403, "", []harness.Option{w.who["service"]}},
	}
	document := func(path string) []try { return []try{{200, "", nil}, {304, "", []harness.Option{etag(path)}}} }

	big128 := harness.Body("application/json", []byte(`{"client_name":"`+strings.Repeat("x", 129<<10)+`"}`))
	initial := w.initialToken(t)
	app := map[string]any{"redirect_uris": []string{harness.RedirectURI}}
	registered, manage := w.registration(t, initial)
	deleted, last := w.registration(t, initial)
	full := map[string]any{"client_id": registered, "redirect_uris": []string{harness.RedirectURI}}
	bodies := func(as harness.Option, success int, body any) []try {
		return []try{{success, "", []harness.Option{as, harness.JSON(body)}},
			{400, "", []harness.Option{as, harness.JSON(map[string]any{"redirect_uris": "x"})}},
			{401, "", []harness.Option{harness.Bearer("made-up"), harness.JSON(body)}},
			{413, "", []harness.Option{as, big128}}, {415, "", []harness.Option{as, text}}}
	}

	tries := map[string][]try{
		"registerClient":  bodies(initial, 201, app),
		"getRegistration": {{200, "", []harness.Option{manage}}, {401, "", nil}},
		"putRegistration": bodies(manage, 200, full),
		// A token of a deleted client is refused like any wrong token.
		"deleteRegistration": {{401, "", []harness.Option{initial}}, {204, "", []harness.Option{last}},
			{401, "", []harness.Option{last}}},
		"getOpenidConfiguration":         document("/.well-known/openid-configuration"),
		"getAuthorizationServerMetadata": document("/.well-known/oauth-authorization-server"),
		"getJwks":                        document("/oauth/jwks"),
		"authorize": {{303, request(), nil},
			{200, request("response_mode", "form_post", "prompt", "none"), nil},
			{303, request("scope", ""), nil}, {400, request("redirect_uri", "https://other.example/"), nil},
			{414, request("state", big[:17<<10]), nil}},
		"authorizeByPost": {{303, "", []harness.Option{harness.Form(c.NewFlow("openid").Query)}},
			{400, "a=b", []harness.Option{form("a", "b")}},
			{413, "", []harness.Option{form("state", big)}}, {415, "", []harness.Option{text}}},
		"checkSession": {{200, "", nil}},
		"endSession": {{200, "", nil},
			{303, url.Values{"id_token_hint": {ended.IDToken},
				"post_logout_redirect_uri": {harness.RedirectURI}}.Encode(), nil}, {400, "client_id=unknown", nil}},
		"endSessionByPost": {{303, "", []harness.Option{form("client_id", c.ID)}},
			{400, "", []harness.Option{harness.Body("application/x-www-form-urlencoded", []byte("%zz"))}}},
		"token": {{200, "", []harness.Option{basic,
			form("grant_type", "client_credentials", "scope", "Voice")}},
			{400, "", []harness.Option{basic, form("grant_type", "password")}},
			{401, "", []harness.Option{harness.Basic(machine.ID, "wrong"),
				form("grant_type", "client_credentials")}},
			{413, "", []harness.Option{basic, form("grant_type", big)}}, {415, "", []harness.Option{basic, text}}},
		"authorizeDevice": {{200, "", []harness.Option{form("client_id", device.ID, "scope", "openid")}},
			{400, "", []harness.Option{form("client_id", device.ID, "scope", "nonsense")}},
			{401, "", []harness.Option{harness.Basic(machine.ID, "wrong"), form("scope", "openid")}},
			{413, "", []harness.Option{form("client_id", device.ID, "scope", big)}},
			{415, "", []harness.Option{text}}},
		"pushAuthorizationRequest": {
			{201, "", []harness.Option{harness.Basic(web.ID, web.Secret), harness.Form(web.NewFlow("openid").Query)}},
			{400, "", []harness.Option{basic, form("response_type", "code")}},
			{401, "", []harness.Option{harness.Basic(web.ID, "wrong"), form("response_type", "code")}},
			{413, "", []harness.Option{basic, form("state", big)}}, {415, "", []harness.Option{basic, text}}},
		"introspect":  authenticated("token"),
		"revoke":      authenticated("token"),
		"getUserinfo": userinfo,
		"postUserinfo": append([]try{{200, "", []harness.Option{form("access_token", tokens.AccessToken)}}},
			userinfo...),
	}

	for _, op := range w.operations("Identity") {
		t.Run(op.OperationID, func(t *testing.T) {
			seen := make(map[string]bool)
			for _, try := range tries[op.OperationID] {
				target := strings.ReplaceAll(op.path, "{client_id}", registered)
				if op.OperationID == "deleteRegistration" {
					target = strings.ReplaceAll(op.path, "{client_id}", deleted)
				}
				if try.query != "" {
					target += "?" + try.query
				}
				a := w.Do(t, op.method, target, try.opts...)
				seen[strconv.Itoa(a.Status)] = true
				if a.Status != try.status {
					t.Errorf("%s %.200s = %d %.300s, want %d", op.method, target, a.Status, a.Body, try.status)
				}
			}

			for status := range op.Responses.Map() {
				if !seen[status] && !slices.Contains(unprovoked, status) {
					t.Errorf("%s is documented, but no request provoked it", status)
				}
			}
		})
	}

	if got := w.Get(t, "//.well-known/openid-configuration"); got.Status != http.StatusOK {
		t.Errorf("discovery after a double slash = %d, want 200", got.Status)
	}
}

// initialToken permits registrations in the project, and returns an initial access token as a
// bearer token.
func (w *world) initialToken(t *testing.T) harness.Option {
	t.Helper()
	return harness.Bearer(w.initialSecret(t))
}

func (w *world) initialSecret(t *testing.T) string {
	t.Helper()
	w.CLI(t, "", "project", "update", w.ID, "--client-registration", "token")
	return w.CLI(t, "", "client-registration", "token", "create", "--project", w.ID)["token"].(string)
}

// registration registers a client, and returns its id and its registration access token as a bearer
// token.
func (w *world) registration(t *testing.T, initial harness.Option) (id string, manage harness.Option) {
	t.Helper()
	made := w.Post(t, "/oauth/register", initial,
		harness.JSON(map[string]any{"redirect_uris": []string{harness.RedirectURI}})).Want(t, 201).Object(t)
	return made["client_id"].(string), harness.Bearer(made["registration_access_token"].(string))
}

// with sets pairs of names and values; an empty value removes the name.
func with(v url.Values, pairs ...string) url.Values {
	for i := 0; i < len(pairs); i += 2 {
		if v.Set(pairs[i], pairs[i+1]); pairs[i+1] == "" {
			v.Del(pairs[i])
		}
	}
	return v
}
