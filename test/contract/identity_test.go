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

// A probe is a request, and the status of the response that it must get.
type probe struct {
	status int
	query  string
	opts   []harness.Option
}

// wantStatus returns a probe without a query.
func wantStatus(status int, opts ...harness.Option) probe {
	return probe{status: status, opts: opts}
}

// withQuery returns the probe with a query.
func (p probe) withQuery(query string) probe {
	p.query = query
	return p
}

// TestIdentity shows that every operation of the identity provider returns all its documented
// statuses, except those in unprovoked.
func TestIdentity(t *testing.T) {
	w := newWorld(t)
	c := w.NewClient(t, "spa", "--first-party", "--post-logout-redirect-uri", harness.RedirectURI)
	sub := w.NewSubscriber(t)
	tokens, _ := c.SignIn(t, sub, "openid offline_access")
	ended, _ := c.SignIn(t, sub, "openid")
	device := w.NewClient(t, "native", "--grant", "device_code")
	machine := w.NewClient(t, "service", "--scope", "Voice")
	web := w.NewClient(t, "web")

	authorization := func(pairs ...string) string { return with(c.NewFlow("openid").Query, pairs...).Encode() }
	big := strings.Repeat("x", 64<<10)
	basic := harness.Basic(machine.ID, machine.Secret)
	wrongBasic := harness.Basic(machine.ID, "wrong")
	form := func(pairs ...string) harness.Option { return harness.Form(with(url.Values{}, pairs...)) }
	text := harness.Body("text/plain", []byte("x"))
	authenticated := func(field string) []probe {
		return []probe{
			wantStatus(200, basic, form(field, "x")),
			wantStatus(400, basic, form(field, "x")).withQuery("a=b"),
			wantStatus(401, wrongBasic, form(field, "x")),
			wantStatus(413, basic, form(field, big)),
			wantStatus(415, basic, text),
		}
	}
	userinfo := []probe{
		wantStatus(200, harness.Bearer(tokens.AccessToken)),
		wantStatus(401),
		wantStatus(401, harness.Bearer("made-up")),
		wantStatus(403, w.who["service"]),
	}
	document := func(path string) []probe {
		etag := w.Get(t, path).Want(t, 200).Header.Get("ETag")
		return []probe{wantStatus(200), wantStatus(304, harness.Header("If-None-Match", etag))}
	}

	bigName := harness.Body("application/json", []byte(`{"client_name":"`+strings.Repeat("x", 129<<10)+`"}`))
	initial := w.initialToken(t)
	app := map[string]any{"redirect_uris": []string{harness.RedirectURI}}
	registered, manage := w.register(t, initial)
	deleted, manageDeleted := w.register(t, initial)
	full := map[string]any{"client_id": registered, "redirect_uris": []string{harness.RedirectURI}}
	registration := func(caller harness.Option, success int, body any) []probe {
		return []probe{
			wantStatus(success, caller, harness.JSON(body)),
			wantStatus(400, caller, harness.JSON(map[string]any{"redirect_uris": "x"})),
			wantStatus(401, harness.Bearer("made-up"), harness.JSON(body)),
			wantStatus(413, caller, bigName),
			wantStatus(415, caller, text),
		}
	}

	endedLogin := url.Values{
		"id_token_hint":            {ended.IDToken},
		"post_logout_redirect_uri": {harness.RedirectURI},
	}
	probes := map[string][]probe{
		"registerClient":  registration(initial, 201, app),
		"getRegistration": {wantStatus(200, manage), wantStatus(401)},
		"putRegistration": registration(manage, 200, full),
		"deleteRegistration": {
			wantStatus(401, initial),
			wantStatus(204, manageDeleted),
			wantStatus(401, manageDeleted), // the token of a deleted client is refused like any wrong token
		},
		"getOpenidConfiguration":         document("/.well-known/openid-configuration"),
		"getAuthorizationServerMetadata": document("/.well-known/oauth-authorization-server"),
		"getJwks":                        document("/oauth/jwks"),
		"authorize": {
			wantStatus(303).withQuery(authorization()),
			wantStatus(200).withQuery(authorization("response_mode", "form_post", "prompt", "none")),
			wantStatus(303).withQuery(authorization("scope", "")),
			wantStatus(400).withQuery(authorization("redirect_uri", "https://other.example/")),
			wantStatus(414).withQuery(authorization("state", big[:17<<10])),
		},
		"authorizeByPost": {
			wantStatus(303, harness.Form(c.NewFlow("openid").Query)),
			wantStatus(400, form("a", "b")).withQuery("a=b"),
			wantStatus(413, form("state", big)),
			wantStatus(415, text),
		},
		"checkSession": {wantStatus(200)},
		"endSession": {
			wantStatus(200),
			wantStatus(303).withQuery(endedLogin.Encode()),
			wantStatus(400).withQuery("client_id=unknown"),
		},
		"endSessionByPost": {
			wantStatus(303, form("client_id", c.ID)),
			wantStatus(400, harness.Body("application/x-www-form-urlencoded", []byte("%zz"))),
		},
		"token": {
			wantStatus(200, basic, form("grant_type", "client_credentials", "scope", "Voice")),
			wantStatus(400, basic, form("grant_type", "password")),
			wantStatus(401, wrongBasic, form("grant_type", "client_credentials")),
			wantStatus(413, basic, form("grant_type", big)),
			wantStatus(415, basic, text),
		},
		"authorizeDevice": {
			wantStatus(200, form("client_id", device.ID, "scope", "openid")),
			wantStatus(400, form("client_id", device.ID, "scope", "nonsense")),
			wantStatus(401, wrongBasic, form("scope", "openid")),
			wantStatus(413, form("client_id", device.ID, "scope", big)),
			wantStatus(415, text),
		},
		"pushAuthorizationRequest": {
			wantStatus(201, harness.Basic(web.ID, web.Secret), harness.Form(web.NewFlow("openid").Query)),
			wantStatus(400, basic, form("response_type", "code")),
			wantStatus(401, harness.Basic(web.ID, "wrong"), form("response_type", "code")),
			wantStatus(413, basic, form("state", big)),
			wantStatus(415, basic, text),
		},
		"introspect":   authenticated("token"),
		"revoke":       authenticated("token"),
		"getUserinfo":  userinfo,
		"postUserinfo": append([]probe{wantStatus(200, form("access_token", tokens.AccessToken))}, userinfo...),
	}

	for _, op := range w.operations("Identity") {
		t.Run(op.OperationID, func(t *testing.T) {
			id := registered
			if op.OperationID == "deleteRegistration" {
				id = deleted
			}
			path := strings.ReplaceAll(op.path, "{client_id}", id)
			seen := make(map[string]bool)
			for _, attempt := range probes[op.OperationID] {
				target := path
				if attempt.query != "" {
					target += "?" + attempt.query
				}
				a := w.Do(t, op.method, target, attempt.opts...)
				seen[strconv.Itoa(a.Status)] = true
				if a.Status != attempt.status {
					t.Errorf("%s %.200s = %d %.300s, want %d", op.method, target, a.Status, a.Body, attempt.status)
				}
			}

			for status := range op.Responses.Map() {
				if !seen[status] && !slices.Contains(unprovoked, status) {
					t.Errorf("the status %s is documented, but no request provoked it", status)
				}
			}
		})
	}

	if a := w.Get(t, "//.well-known/openid-configuration"); a.Status != http.StatusOK {
		t.Errorf("getting the OpenID configuration with a double slash returned %d, want 200", a.Status)
	}
}

// initialToken permits registrations in the project, and returns an initial access token as a
// bearer token.
func (w *world) initialToken(t *testing.T) harness.Option {
	t.Helper()
	return harness.Bearer(w.initialSecret(t))
}

// initialSecret permits registrations in the project, and returns an initial access token.
func (w *world) initialSecret(t *testing.T) string {
	t.Helper()
	w.CLI(t, "", "project", "update", w.ID, "--client-registration", "token")
	return w.CLI(t, "", "client-registration", "token", "create", "--project", w.ID)["token"].(string)
}

// register registers a client. It returns the client's id, and its registration access token as a
// bearer token.
func (w *world) register(t *testing.T, initial harness.Option) (id string, manage harness.Option) {
	t.Helper()
	app := map[string]any{"redirect_uris": []string{harness.RedirectURI}}
	client := w.Post(t, "/oauth/register", initial, harness.JSON(app)).Want(t, 201).Object(t)
	return client["client_id"].(string), harness.Bearer(client["registration_access_token"].(string))
}

// with sets pairs of names and values in v, and returns v. An empty value removes the name.
func with(v url.Values, pairs ...string) url.Values {
	for pair := range slices.Chunk(pairs, 2) {
		name, value := pair[0], pair[1]
		if value == "" {
			v.Del(name)
			continue
		}
		v.Set(name, value)
	}
	return v
}
