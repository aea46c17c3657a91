package oidc_test

import (
	"bytes"
	"encoding/json"
	"image"
	"image/png"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/limit"
	"github.com/selvage/selvage/internal/session"
)

const registerPath = "/oauth/register"

// permit sets who may register clients in the world's project.
func (w *world) permit(mode fabric.ClientRegistration) {
	w.t.Helper()
	_, err := w.fabric.Projects.Update(w.t.Context(), w.project.ID, fabric.ProjectChange{ClientRegistration: &mode})
	must(w.t, err)
}

// initialToken permits registrations with a token and returns one.
func (w *world) initialToken() string {
	w.t.Helper()
	w.permit(fabric.ClientsByToken)
	_, secret, err := w.fabric.RegistrationTokens.Create(w.t.Context(), w.project.ID,
		fabric.RegistrationTokenInput{}, nil)
	must(w.t, err)
	return secret
}

// A metadata is the body of a registration.
type metadata map[string]any

// app returns the metadata of a valid client, with changes.
func app(more metadata) metadata {
	m := metadata{"redirect_uris": []string{callback}, "client_name": "Parrot"}
	maps.Copy(m, more)
	return m
}

// send sends body as JSON, with a bearer token unless token is "". A string is sent unchanged.
func (w *world) send(method, path, token string, body any) reply {
	w.t.Helper()
	text, isText := body.(string)
	if !isText && body != nil {
		raw, err := json.Marshal(body)
		must(w.t, err)
		text = string(raw)
	}

	r, err := http.NewRequest(method, w.url+path, strings.NewReader(text))
	must(w.t, err)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return w.browser().do(r)
}

// registered registers a client and returns the response.
func (w *world) registered(token string, m metadata) map[string]any {
	w.t.Helper()
	got := w.send("POST", registerPath, token, m)
	if got.status != http.StatusCreated {
		w.t.Fatalf("registering %v = %d %s, want 201", m, got.status, got.body)
	}
	return got.json(w.t)
}

// clientOf returns the client that a registration created.
func (w *world) clientOf(created map[string]any) idp.Client {
	w.t.Helper()
	c, err := w.idp.Clients.Find(w.t.Context(), text(created["client_id"]))
	must(w.t, err)
	return c
}

// TestRegister shows which defaults a registered client gets, and that the client can complete a
// login. People are asked for consent. The client's tokens do not give access to the fabric.
func TestRegister(t *testing.T) {
	w := newWorld(t)
	got := w.send("POST", registerPath, w.initialToken(), app(metadata{"surprise": true, "client_uri": nil,
		"scope":       "openid Voice profile offline_access nonsense",
		"grant_types": []string{"refresh_token", "authorization_code"}}))
	created := got.json(t)
	if got.status != http.StatusCreated || got.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("registering = %d %v %s, want 201 and no-store", got.status, got.header, got.body)
	}

	for name, want := range map[string]string{"token_endpoint_auth_method": "client_secret_basic",
		"response_types": "[code]", "grant_types": "[authorization_code refresh_token]", "application_type": "web",
		"scope": "openid profile offline_access", "client_secret_expires_at": "0", "client_name": "Parrot",
		"registration_client_uri": w.url + registerPath + "/" + text(created["client_id"])} {
		if text(created[name]) != want {
			t.Errorf("%s = %v, want %s", name, created[name], want)
		}
	}

	c := w.clientOf(created)
	if c.FirstParty || c.AccessToken != idp.JWTToken || c.ProjectID != w.project.ID || c.RegisteredBy == "" {
		t.Errorf("the registered client is %+v", c)
	}

	b := w.browser()
	consent := b.logIn(b.authorize(request(c, "scope", "openid offline_access")), email, secret)
	if !strings.Contains(consent.body, "consent-allow") || !strings.Contains(consent.body, "Parrot") {
		t.Fatalf("no consent page: %d %s", consent.status, consent.body)
	}

	code := b.consent(consent, "allow").param("code")
	form := url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {callback},
		"code_verifier": {verifier}}
	tokens := w.postAs(c.ID, text(created["client_secret"]), "/oauth/token", form).json(t)
	if tokens["refresh_token"] == nil || tokens["id_token"] == nil {
		t.Fatalf("the tokens are %v, want a refresh token and an ID token", tokens)
	}

	if _, err := w.fabric.Tokens.Open(t.Context(), text(tokens["access_token"]), fabric.SAT); err == nil {
		t.Error("the access token gives access to the fabric")
	}
	if got := w.browser().authorize(request(c, "scope", "openid Voice")); got.param("error") != "invalid_scope" {
		t.Errorf("a request for the scope Voice returned %v, want invalid_scope", got.parameters())
	}
}

// postAs posts a form with HTTP Basic.
func (w *world) postAs(name, password, path string, form url.Values) reply {
	w.t.Helper()
	r, err := http.NewRequest("POST", w.url+path, strings.NewReader(form.Encode()))
	must(w.t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth(name, password)
	return w.browser().do(r)
}

// TestRegisterPermission shows who may register. The discovery document contains the endpoint only
// if registration is possible somewhere.
func TestRegisterPermission(t *testing.T) {
	w := newWorld(t)
	token := w.initialToken()
	limited := fabric.RegistrationTokenInput{MaxUses: 1, Expires: w.now().Add(time.Hour)}
	_, once, err := w.fabric.RegistrationTokens.Create(t.Context(), w.project.ID, limited, nil)
	must(t, err)
	wrong := app(metadata{"redirect_uris": []string{"ftp://x"}}) // a failed registration does not use up the token
	if got := w.send("POST", registerPath, once, wrong); got.status != http.StatusBadRequest {
		t.Errorf("an invalid registration = %d, want 400", got.status)
	}

	for i, step := range []struct {
		mode   fabric.ClientRegistration
		token  string
		status int
	}{
		{fabric.ClientsOff, "", 401}, {fabric.ClientsOff, token, 401},
		{fabric.ClientsByToken, "", 401}, {fabric.ClientsByToken, token, 201}, {fabric.ClientsByToken, token, 201},
		{fabric.ClientsByToken, token + "0", 401}, {fabric.ClientsByToken, "rt_", 401},
		{fabric.ClientsByToken, once, 201}, {fabric.ClientsByToken, once, 401},
		{fabric.ClientsOpen, "", 201}, {fabric.ClientsOpen, token, 201}, {fabric.ClientsOpen, "made-up", 401},
	} {
		w.permit(step.mode)
		got := w.send("POST", registerPath, step.token, app(nil))
		if got.status != step.status {
			t.Errorf("%d: with %s and %q = %d %s, want %d",
				i, step.mode, step.token, got.status, got.body, step.status)
		}
		if challenge := got.header.Get("WWW-Authenticate"); got.status == 401 &&
			(!strings.HasPrefix(challenge, "Bearer ") || got.json(t)["error"] != "invalid_token") {
			t.Errorf("%d: the challenge is %q, the body %s", i, challenge, got.body)
		}

		w.pass(time.Second) // caches expire
		doc := w.browser().get("/.well-known/openid-configuration").json(t)
		want := any(w.url + registerPath)
		if step.mode == fabric.ClientsOff {
			want = nil
		}
		if doc["registration_endpoint"] != want {
			t.Errorf("%d: with %s the endpoint in the discovery document is %v, want it only if clients may register",
				i, step.mode, doc["registration_endpoint"])
		}
	}

	w.pass(fabric.DefaultRegistration)
	if got := w.send("POST", registerPath, token, app(nil)); got.status != http.StatusUnauthorized {
		t.Errorf("an expired token = %d, want 401", got.status)
	}
}

// TestRegisterInvalid shows that the error names each wrong member.
func TestRegisterInvalid(t *testing.T) {
	w := newWorld(t)
	token := w.initialToken()
	const uri, meta = "invalid_redirect_uri", "invalid_client_metadata"
	for _, tt := range []struct {
		member string
		value  any
		code   string
	}{
		{"redirect_uris", []string{}, uri}, {"redirect_uris", "https://a.example", uri},
		{"redirect_uris", []string{callback + "#x"}, uri}, {"redirect_uris", []string{"http://a.example"}, uri},
		{"redirect_uris", []string{"javascript:alert(1)"}, uri},
		{"redirect_uris", []string{"com.example.app:/cb"}, uri},
		{"redirect_uris", []string{"https://*.a.example"}, uri},
		{"redirect_uris", slices.Repeat([]string{callback}, 51), uri},
		{"client_name", strings.Repeat("x", 101), meta}, {"client_name", "a\nb", meta}, {"client_name", 7, meta},
		{"client_name", "Acme\u202eapp", meta}, {"client_name", "Acme\u200b", meta}, {"client_name", "Acm\u0435", meta},
		{"application_type", "desktop", meta}, {"token_endpoint_auth_method", "client_secret_jwt", meta},
		{"token_endpoint_auth_signing_alg", "none", meta},
		{"grant_types", []string{"password"}, meta}, {"grant_types", []string{"client_credentials"}, meta},
		{"grant_types", []string{"authorization_code", "implicit"}, meta},
		{"response_types", []string{"token"}, meta}, {"response_types", []string{"none"}, meta},
		{"scope", "Voice Management", meta}, {"id_token_signed_response_alg", "none", meta},
		{"userinfo_signed_response_alg", "HS256", meta}, {"request_object_signing_alg", "none", meta},
		{"request_uris", []string{"https://a.example/r"}, meta}, {"subject_type", "mine", meta},
		{"sector_identifier_uri", "http://a.example/s", meta}, {"jwks", map[string]any{}, meta},
		{"jwks_uri", "http://a.example/jwks", meta}, {"default_max_age", -1, meta}, {"default_max_age", "1", meta},
		{"default_acr_values", slices.Repeat([]string{"1"}, 11), meta}, {"contacts", []string{"a\x00"}, meta},
		{"initiate_login_uri", "http://localhost/start", meta}, {"initiate_login_uri", "javascript:alert(1)", meta},
		{"logo_uri", "javascript:alert(1)", meta}, {"policy_uri", "data:text/html,x", meta},
		{"tos_uri", "https://u@a.example", meta}, {"client_uri", "x", meta},
		{"post_logout_redirect_uris", []string{"javascript:alert(1)"}, meta},
		{"frontchannel_logout_uri", "https://other.example/out", meta}, {"software_id", strings.Repeat("x", 256), meta},
	} {
		got := w.send("POST", registerPath, token, app(metadata{tt.member: tt.value}))
		body := got.json(t)
		if got.status != http.StatusBadRequest || body["error"] != tt.code ||
			!strings.Contains(text(body["error_description"]), tt.member) {
			t.Errorf("%s = %.60v: %d %s, want %s that names it", tt.member, tt.value, got.status, got.body, tt.code)
		}
	}

	got := w.send("POST", registerPath, token, app(metadata{"response_types": []string{"code id_token"},
		"grant_types": []string{"authorization_code"}}))
	if body := got.json(t); !strings.Contains(text(body["error_description"]), "grant_types") {
		t.Errorf("registering a response type without its grant type = %d %s, want an error about grant_types",
			got.status, got.body)
	}
}

// TestRegisterHostile shows that everything that a client registers appears in pages and headers
// only as text. Oversized and unreadable bodies are refused.
func TestRegisterHostile(t *testing.T) {
	w := newWorld(t)
	token := w.initialToken()
	const name = `"><script>alert(1)</script>`
	created := w.registered(token, app(metadata{"client_name": name, "token_endpoint_auth_method": "none",
		"policy_uri": `https://a.example/"onmouseover="alert(1)`, "tos_uri": "https://a.example/<b>"}))
	page := w.browser().authorize(request(w.clientOf(created)))
	if strings.Contains(page.body, "<script>alert") || strings.Contains(page.body, `"onmouseover`) ||
		strings.Contains(page.body, "<b>") || !strings.Contains(page.body, "&lt;script&gt;") {
		t.Errorf("the login page does not escape the client's metadata: %s", page.body)
	}

	for _, bad := range []string{"https://a.example/\r\nX: y", "https://ä.example/\"", `https://a.example/\`} {
		got := w.send("POST", registerPath, token, app(metadata{"redirect_uris": []string{bad}}))
		text := text(got.json(t)["error_description"])
		if got.status != http.StatusBadRequest || strings.ContainsAny(text, "\"\\\r\n") ||
			strings.ContainsFunc(text, func(r rune) bool { return r > '~' }) {
			t.Errorf("the description of %q is %q", bad, text)
		}
	}

	long := `{"client_name":"` + strings.Repeat("x", 128<<10) + `"}`
	for body, status := range map[string]int{long: 413, `[]`: 400, `{`: 400, `{"a":1,"a":2}`: 400, `{}x`: 400,
		`{"redirect_uris":["\ud800"]}`: 400, "": 400} {
		if got := w.send("POST", registerPath, token, body); got.status != status {
			t.Errorf("the body %.40s = %d %s, want %d", body, got.status, got.body, status)
		}
	}

	r, err := http.NewRequest("POST", w.url+registerPath, strings.NewReader("client_name=x"))
	must(t, err)
	r.Header = http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Authorization": {"Bearer " + token}}
	if got := w.browser().do(r); got.status != http.StatusUnsupportedMediaType {
		t.Errorf("a form instead of JSON = %d %s, want 415", got.status, got.body)
	}

	if got := w.browser().get(registerPath); got.status != http.StatusMethodNotAllowed {
		t.Errorf("GET = %d, want 405", got.status)
	}
}

// TestRegisterLimits shows that two numbers are limited: the registrations of a network per hour,
// and the registered clients of a project.
func TestRegisterLimits(t *testing.T) {
	w := newWorld(t)
	token := w.initialToken()
	w.idp.MaxRegistered = 2
	for range 2 {
		w.registered(token, app(nil))
	}
	got := w.send("POST", registerPath, token, app(nil))
	if got.status != http.StatusBadRequest || got.json(t)["error"] != "access_denied" {
		t.Errorf("one client too many = %d %s, want access_denied", got.status, got.body)
	}

	w.limits.Set(limit.Rates{limit.RegisterPerNetwork: session.Rate{Burst: 1, Every: time.Hour}})
	w.send("POST", registerPath, "wrong", app(nil))
	got = w.send("POST", registerPath, token, app(nil))
	if got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") == "" {
		t.Errorf("one request too many = %d %v, want 429 and Retry-After", got.status, got.header)
	}
}

// TestManageRegistration shows that a client can read, replace and delete its registration, and
// that nobody else can.
func TestManageRegistration(t *testing.T) {
	w := newWorld(t)
	initial := w.initialToken()
	created := w.registered(initial, app(metadata{"token_endpoint_auth_method": "none",
		"contacts": []string{"a@b.example"}}))
	other := w.registered(initial, app(nil))
	at, token := registerPath+"/"+text(created["client_id"]), text(created["registration_access_token"])

	got := w.send("GET", at, token, nil)
	if !maps.EqualFunc(got.json(t), created, func(a, b any) bool { return text(a) == text(b) }) {
		t.Errorf("reading = %d %s, want %v", got.status, got.body, created)
	}

	for _, wrong := range []string{"", initial, text(other["registration_access_token"]), token + "x"} {
		for _, method := range []string{"GET", "PUT", "DELETE"} {
			if got := w.send(method, at, wrong, app(metadata{"client_id": created["client_id"]})); got.status != 401 {
				t.Errorf("%s with the token %q = %d %s, want 401",
					method, wrong, got.status, got.body)
			}
		}
	}

	own, _ := w.client(nil) // a client that an operator created cannot be managed this way
	for _, token := range []string{"", token} {
		if got := w.send("GET", registerPath+"/"+own.ID, token, nil); got.status != 401 {
			t.Errorf("reading a client that an operator created = %d, want 401", got.status)
		}
	}

	for name, body := range map[string]metadata{"client_id": app(nil),
		"client_secret": app(metadata{"client_id": created["client_id"], "client_secret": "wrong"}),
		"redirect_uris": {"client_id": created["client_id"]}} {
		if got := w.send("PUT", at, token, body); got.status != 400 || !strings.Contains(got.body, name) {
			t.Errorf("replacing the metadata with a wrong %s = %d %s, want 400 that names it",
				name, got.status, got.body)
		}
	}
	put := w.send("PUT", at, token, app(metadata{"client_id": created["client_id"], "client_name": "Owl"})).json(t)
	c := w.clientOf(created)
	if put["client_name"] != "Owl" || put["contacts"] != nil || put["client_secret"] == nil || c.Name != "Owl" ||
		c.AuthMethod != idp.AuthBasic || c.Type != idp.Web || !c.HasSecret(text(put["client_secret"]), w.now()) {
		t.Errorf("after the replacement, the response is %v and the client is %+v", put, c)
	}

	set := w.tokensOf(c, text(put["client_secret"]))
	if got := w.send("DELETE", at, token, nil); got.status != http.StatusNoContent {
		t.Errorf("deleting = %d %s, want 204", got.status, got.body)
	}
	if got := w.userinfo(text(set["access_token"])); got.status != http.StatusUnauthorized {
		t.Errorf("userinfo with a token of the deleted client = %d, want 401", got.status)
	}
	if got := w.send("GET", at, token, nil); got.status != http.StatusUnauthorized {
		t.Errorf("reading the deleted client = %d, want 401", got.status)
	}
}

// tokensOf signs ada in to a third-party client with a secret.
func (w *world) tokensOf(c idp.Client, password string) map[string]any {
	w.t.Helper()
	b := w.browser()
	code := b.consent(b.logIn(b.authorize(request(c)), email, secret), "allow").param("code")
	return w.postAs(c.ID, password, "/oauth/token", url.Values{"grant_type": {"authorization_code"}, "code": {code},
		"redirect_uri": {callback}, "code_verifier": {verifier}}).json(w.t)
}

// TestRegisterDocuments shows what happens to the documents of a client. The list of its sector
// must contain its redirect URIs. The client's logo is shown if it is a valid picture.
func TestRegisterDocuments(t *testing.T) {
	w := newWorld(t)
	token := w.initialToken()
	var logo bytes.Buffer
	must(t, png.Encode(&logo, image.NewGray(image.Rect(0, 0, 40, 40))))
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body := map[string]string{"/good": `["` + callback + `"]`, "/bad": `["https://other.example/cb"]`,
			"/logo": logo.String(), "/text": "<svg/>"}[r.URL.Path]
		_, _ = rw.Write([]byte(body))
	}))
	t.Cleanup(srv.Close)

	created := w.registered(token, app(metadata{"sector_identifier_uri": srv.URL + "/good"}))
	if created["subject_type"] != "pairwise" {
		t.Errorf("a client with a sector has subject_type %v", created["subject_type"])
	}
	for _, path := range []string{"/bad", "/text", "/missing"} {
		got := w.send("POST", registerPath, token, app(metadata{"sector_identifier_uri": srv.URL + path}))
		if body := got.json(t); got.status != http.StatusBadRequest || body["error"] != "invalid_client_metadata" {
			t.Errorf("the sector at %s = %d %s, want invalid_client_metadata", path, got.status, got.body)
		}
	}

	for path, shown := range map[string]bool{"/logo": true, "/text": false, "/missing": false} {
		created := w.registered(token, app(metadata{"logo_uri": srv.URL + path}))
		page := w.browser().authorize(request(w.clientOf(created)))
		if strings.Contains(page.body, `id="brand-logo"`) != shown || strings.Contains(page.body, srv.URL) ||
			created["logo_uri"] != srv.URL+path {
			t.Errorf("with the logo at %s, the login page is %s", path, page.body)
		}
		put := metadata{"client_id": created["client_id"]}
		w.send("PUT", registerPath+"/"+text(created["client_id"]), text(created["registration_access_token"]), app(put))
		if c := w.clientOf(created); c.Logo != "" || c.LogoURI != "" {
			t.Errorf("after the removal of the logo, the client has the logo %q from %q, want none",
				c.Logo, c.LogoURI)
		}
	}
}

// TestRequestDefaults shows that the default maximum age and class of a client apply to requests
// without these parameters.
func TestRequestDefaults(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(func(n *idp.Client) { n.DefaultMaxAge, n.DefaultACR = new(int64(60)), []string{"2"} })
	other, _ := w.client(nil)
	b := w.browser()
	b.code(other)
	if got := b.authorize(request(c, "acr_values", "1", "prompt", "none")); got.param("code") == "" {
		t.Errorf("a request for another class: %v, want a code", got.parameters())
	}
	if got := b.authorize(request(c, "prompt", "none")); got.param("error") != "login_required" {
		t.Errorf("with a login with one factor: %v, want login_required", got.parameters())
	}

	w.pass(2 * time.Minute)
	old := request(c, "acr_values", "1", "prompt", "none")
	if got := b.authorize(old); got.param("error") != "login_required" {
		t.Errorf("with an old login: %v, want login_required", got.parameters())
	}
	if got := b.authorize(with(old, "max_age", "600")); got.param("code") == "" {
		t.Errorf("with an old login and a longer maximum age: %v, want a code", got.parameters())
	}
}

// TestInitiateLogin shows that the account page links to the URL at which an app starts a login,
// with the issuer as a parameter (OpenID Connect Core, section 4).
func TestInitiateLogin(t *testing.T) {
	w := newWorld(t)
	start, _ := w.client(func(n *idp.Client) { n.Name, n.InitiateLoginURI = "A", "https://app.example/start?a=b" })
	plain, _ := w.client(func(n *idp.Client) { n.Name = "B" })
	b := w.browser()
	for _, c := range []idp.Client{start, plain} {
		w.redeem(c, b.code(c))
	}

	page := b.account()
	link := `href="https://app.example/start?a=b&amp;iss=` + url.QueryEscape(w.url+"/") + `"`
	if !strings.Contains(page.body, `id="app-open-0"`) || !strings.Contains(page.body, link) ||
		strings.Contains(page.body, `id="app-open-1"`) {
		t.Errorf("the account page lacks the link %s: %s", link, page.body)
	}
}
