package oidc_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
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

// metadata is the body of a registration.
type metadata map[string]any

// appMetadata returns the metadata of a valid client, with changes.
func appMetadata(more metadata) metadata {
	m := metadata{"redirect_uris": []string{callback}, "client_name": "Parrot"}
	maps.Copy(m, more)
	return m
}

// send sends body as JSON, with a bearer token unless token is "". A string is sent unchanged.
func (w *world) send(method, path, token string, body any) reply {
	w.t.Helper()
	content, isText := body.(string)
	if !isText && body != nil {
		raw, err := json.Marshal(body)
		must(w.t, err)
		content = string(raw)
	}

	req, err := http.NewRequest(method, w.url+path, strings.NewReader(content))
	must(w.t, err)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return w.newBrowser().do(req)
}

// registerClient registers a client and returns the response.
func (w *world) registerClient(token string, m metadata) map[string]any {
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
	got := w.send("POST", registerPath, w.initialToken(), appMetadata(metadata{
		"surprise":    true,
		"client_uri":  nil,
		"scope":       "openid Voice profile offline_access nonsense",
		"grant_types": []string{"refresh_token", "authorization_code"},
	}))
	wantStatus(t, "registering", got, http.StatusCreated)
	wantHeader(t, "registering", got, "Cache-Control", "no-store")

	created := got.json(t)
	for name, want := range map[string]string{
		"application_type":           "web",
		"client_name":                "Parrot",
		"client_secret_expires_at":   "0",
		"grant_types":                "[authorization_code refresh_token]",
		"registration_client_uri":    w.url + registerPath + "/" + text(created["client_id"]),
		"response_types":             "[code]",
		"scope":                      "openid profile offline_access",
		"token_endpoint_auth_method": "client_secret_basic",
	} {
		if value := text(created[name]); value != want {
			t.Errorf("%s is %s, want %s", name, value, want)
		}
	}

	c := w.clientOf(created)
	if c.FirstParty {
		t.Error("the registered client is first-party, want third-party")
	}
	if c.AccessToken != idp.JWTToken {
		t.Errorf("the client gets access tokens of the format %s, want %s", c.AccessToken, idp.JWTToken)
	}
	if c.ProjectID != w.project.ID {
		t.Errorf("the client is in the project %s, want %s", c.ProjectID, w.project.ID)
	}
	if c.RegisteredBy == "" {
		t.Error("RegisteredBy is empty, want the id of the token")
	}

	b := w.newBrowser()
	consent := b.logIn(b.authorize(request(c, "scope", "openid offline_access")), email, secret)
	wantText(t, "the consent page", consent, "consent-allow", "Parrot")

	form := with(redemption(c, b.consent(consent, "allow").param("code")), "client_id", "")
	tokens := w.postAs(c.ID, text(created["client_secret"]), "/oauth/token", form).json(t)
	for _, name := range []string{"refresh_token", "id_token"} {
		if tokens[name] == nil {
			t.Errorf("the token response has no %s, want one", name)
		}
	}

	if _, err := w.fabric.Tokens.Open(t.Context(), text(tokens["access_token"]), fabric.SAT); err == nil {
		t.Error("the access token gives access to the fabric")
	}
	voice := w.newBrowser().authorize(request(c, "scope", "openid Voice"))
	wantParam(t, "a request for the scope Voice", voice, "error", "invalid_scope")
}

// postAs posts a form with HTTP Basic.
func (w *world) postAs(name, password, path string, form url.Values) reply {
	w.t.Helper()
	req, err := http.NewRequest("POST", w.url+path, strings.NewReader(form.Encode()))
	must(w.t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.SetBasicAuth(name, password)
	return w.newBrowser().do(req)
}

// TestRegisterPermission shows who may register. The discovery document contains the endpoint only
// if registration is possible somewhere.
func TestRegisterPermission(t *testing.T) {
	w := newWorld(t)
	token := w.initialToken()
	limited := fabric.RegistrationTokenInput{MaxUses: 1, Expires: w.now().Add(time.Hour)}
	_, once, err := w.fabric.RegistrationTokens.Create(t.Context(), w.project.ID, limited, nil)
	must(t, err)

	// A failed registration does not use up the token.
	wrong := appMetadata(metadata{"redirect_uris": []string{"ftp://x"}})
	invalid := w.send("POST", registerPath, once, wrong)
	wantStatus(t, "an invalid registration", invalid, http.StatusBadRequest)

	for _, step := range []struct {
		mode       fabric.ClientRegistration
		token      string
		wantStatus int
	}{
		{mode: fabric.ClientsOff, token: "", wantStatus: 401},
		{mode: fabric.ClientsOff, token: token, wantStatus: 401},
		{mode: fabric.ClientsByToken, token: "", wantStatus: 401},
		{mode: fabric.ClientsByToken, token: token, wantStatus: 201},
		{mode: fabric.ClientsByToken, token: token, wantStatus: 201},
		{mode: fabric.ClientsByToken, token: token + "0", wantStatus: 401},
		{mode: fabric.ClientsByToken, token: "rt_", wantStatus: 401},
		{mode: fabric.ClientsByToken, token: once, wantStatus: 201},
		{mode: fabric.ClientsByToken, token: once, wantStatus: 401},
		{mode: fabric.ClientsOpen, token: "", wantStatus: 201},
		{mode: fabric.ClientsOpen, token: token, wantStatus: 201},
		{mode: fabric.ClientsOpen, token: "made-up", wantStatus: 401},
	} {
		name := fmt.Sprintf("registration with %s and the token %q", step.mode, step.token)
		w.permit(step.mode)
		got := w.send("POST", registerPath, step.token, appMetadata(nil))
		wantStatus(t, name, got, step.wantStatus)
		if step.wantStatus == http.StatusUnauthorized {
			wantError(t, name, got, "invalid_token")
			if challenge := got.header.Get("WWW-Authenticate"); !strings.HasPrefix(challenge, "Bearer ") {
				t.Errorf("%s: the challenge is %q, want Bearer", name, challenge)
			}
		}
	}

	for mode, want := range map[fabric.ClientRegistration]any{
		fabric.ClientsOff:     nil,
		fabric.ClientsByToken: w.url + registerPath,
		fabric.ClientsOpen:    w.url + registerPath,
	} {
		w.permit(mode)
		w.pass(time.Second) // caches expire
		doc := w.newBrowser().get("/.well-known/openid-configuration").json(t)
		if endpoint := doc["registration_endpoint"]; endpoint != want {
			t.Errorf("with %s, the registration_endpoint is %v, want %v", mode, endpoint, want)
		}
	}

	w.permit(fabric.ClientsOpen)
	w.pass(fabric.DefaultRegistration)
	expired := w.send("POST", registerPath, token, appMetadata(nil))
	wantStatus(t, "an expired token", expired, http.StatusUnauthorized)
}

// TestRegisterLimits shows that two numbers are limited: the registrations of a network per hour,
// and the registered clients of a project.
func TestRegisterLimits(t *testing.T) {
	w := newWorld(t)
	token := w.initialToken()
	w.idp.MaxRegistered = 2
	for range 2 {
		w.registerClient(token, appMetadata(nil))
	}
	got := w.send("POST", registerPath, token, appMetadata(nil))
	wantStatus(t, "one client too many", got, http.StatusBadRequest)
	wantError(t, "one client too many", got, "access_denied")

	w.limits.Set(limit.Rates{limit.RegisterPerNetwork: session.Rate{Burst: 1, Every: time.Hour}})
	w.send("POST", registerPath, "wrong", appMetadata(nil))
	got = w.send("POST", registerPath, token, appMetadata(nil))
	wantStatus(t, "one request too many", got, http.StatusTooManyRequests)
	if got.header.Get("Retry-After") == "" {
		t.Error("one request too many: no Retry-After, want one")
	}
}

// TestRegisterDocuments shows that the document of a client's sector must list the client's redirect
// URIs, and that the client's logo is shown if it is a valid picture.
func TestRegisterDocuments(t *testing.T) {
	w := newWorld(t)
	token := w.initialToken()
	var logo bytes.Buffer
	must(t, png.Encode(&logo, image.NewGray(image.Rect(0, 0, 40, 40))))
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		documents := map[string]string{
			"/good": `["` + callback + `"]`,
			"/bad":  `["https://other.example/cb"]`,
			"/logo": logo.String(),
			"/text": "<svg/>",
		}
		_, _ = rw.Write([]byte(documents[r.URL.Path]))
	}))
	t.Cleanup(srv.Close)

	created := w.registerClient(token, appMetadata(metadata{"sector_identifier_uri": srv.URL + "/good"}))
	if created["subject_type"] != "pairwise" {
		t.Errorf("a client with a sector has the subject_type %v, want pairwise", created["subject_type"])
	}
	for _, path := range []string{"/bad", "/text", "/missing"} {
		got := w.send("POST", registerPath, token, appMetadata(metadata{"sector_identifier_uri": srv.URL + path}))
		wantStatus(t, "the sector at "+path, got, http.StatusBadRequest)
		wantError(t, "the sector at "+path, got, "invalid_client_metadata")
	}

	for path, wantShown := range map[string]bool{"/logo": true, "/text": false, "/missing": false} {
		created := w.registerClient(token, appMetadata(metadata{"logo_uri": srv.URL + path}))
		if created["logo_uri"] != srv.URL+path {
			t.Errorf("the logo_uri is %v, want %s", created["logo_uri"], srv.URL+path)
		}
		page := w.newBrowser().authorize(request(w.clientOf(created)))
		if shown := strings.Contains(page.body, `id="brand-logo"`); shown != wantShown {
			t.Errorf("the logo at %s is shown: %t, want %t", path, shown, wantShown)
		}
		wantNoText(t, "the login page", page, srv.URL)

		location := registerPath + "/" + text(created["client_id"])
		withoutLogo := appMetadata(metadata{"client_id": created["client_id"]})
		w.send("PUT", location, text(created["registration_access_token"]), withoutLogo)
		if c := w.clientOf(created); c.Logo != "" || c.LogoURI != "" {
			t.Errorf("after its removal, the client has the logo %q from %q, want none", c.Logo, c.LogoURI)
		}
	}
}

// TestRequestDefaults shows that the default maximum age and class of a client apply to requests
// without these parameters.
func TestRequestDefaults(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(func(n *idp.Client) { n.DefaultMaxAge, n.DefaultACR = new(int64(60)), []string{"2"} })
	other, _ := w.client(nil)
	b := w.newBrowser()
	b.code(other)
	wantCode(t, "a request for another class", b.authorize(request(c, "acr_values", "1", "prompt", "none")))
	oneFactor := b.authorize(request(c, "prompt", "none"))
	wantParam(t, "with a login with one factor", oneFactor, "error", "login_required")

	w.pass(2 * time.Minute)
	params := request(c, "acr_values", "1", "prompt", "none")
	wantParam(t, "with an old login", b.authorize(params), "error", "login_required")
	longer := b.authorize(with(params, "max_age", "600"))
	wantCode(t, "with an old login and a longer maximum age", longer)
}

// TestInitiateLogin shows that the account page links to the URL at which an app starts a login,
// with the issuer as a parameter (OpenID Connect Core, section 4).
func TestInitiateLogin(t *testing.T) {
	w := newWorld(t)
	start, _ := w.client(func(n *idp.Client) { n.Name, n.InitiateLoginURI = "A", "https://app.example/start?a=b" })
	plain, _ := w.client(func(n *idp.Client) { n.Name = "B" })
	b := w.newBrowser()
	for _, c := range []idp.Client{start, plain} {
		w.redeem(c, b.code(c))
	}

	page := b.account()
	link := `href="https://app.example/start?a=b&amp;iss=` + url.QueryEscape(w.url+"/") + `"`
	wantText(t, "the account page", page, `id="app-open-0"`, link)
	wantNoText(t, "the account page", page, `id="app-open-1"`)
}
