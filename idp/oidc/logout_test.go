package oidc_test

import (
	"context"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
)

const goodbye = "https://app.example/bye"

func withLogout(n *idp.Client) { n.LogoutURIs = []string{goodbye} }

// TestLogout shows that a logout with a hint ends the login and its tokens, and redirects to the
// client. Refresh tokens also end, even if offline_access was granted.
func TestLogout(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(withLogout)
	b := w.browser()
	set := w.redeem(c, b.code(c, "scope", "openid offline_access")).json(t)
	got := b.get("/oauth/logout?" + url.Values{"id_token_hint": {text(set["id_token"])},
		"post_logout_redirect_uri": {goodbye}, "state": {"x y"}}.Encode())
	if got.location == nil || got.location.String() != goodbye+"?state=x+y" {
		t.Fatalf("the logout = %d to %v, want a redirect to the client", got.status, got.location)
	}

	if got := b.authorize(request(c, "prompt", "none")); got.param("error") != "login_required" {
		t.Errorf("prompt=none after a logout redirects to %v, want login_required", got.location)
	}
	if got := w.userinfo(text(set["access_token"])); got.status != http.StatusUnauthorized {
		t.Errorf("userinfo with the access token after a logout = %d, want 401", got.status)
	}
	if got := w.token("grant_type", "refresh_token", "client_id", c.ID, "refresh_token",
		text(set["refresh_token"])); got.json(t)["error"] != "invalid_grant" {
		t.Errorf("a refresh after a logout = %d %s, want invalid_grant", got.status, got.body)
	}

	again := b.get("/oauth/logout?" + url.Values{"id_token_hint": {text(set["id_token"])}}.Encode())
	if again.status != http.StatusOK || !strings.Contains(again.body, "You are signed out") {
		t.Errorf("a second logout = %d %s, want the page that confirms the logout", again.status, again.body)
	}
}

// TestLogoutEndsCopiedCookies shows that a cookie copied before a logout is invalid after it.
func TestLogoutEndsCopiedCookies(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(withLogout)
	b, thief := w.browser(), w.browser()
	set := w.redeem(c, b.code(c)).json(t)

	home, err := url.Parse(w.url)
	must(t, err)
	thief.http.Jar.SetCookies(home, b.http.Jar.Cookies(home))
	if got := thief.authorize(request(c)); got.param("code") == "" {
		t.Fatalf("with the copied cookie before the logout = %d %v, want a code",
			got.status, got.location)
	}

	b.get("/oauth/logout?" + url.Values{"id_token_hint": {text(set["id_token"])}}.Encode())
	if got := thief.authorize(request(c)); got.status != http.StatusOK {
		t.Errorf("with the copied cookie after the logout = %d %v, want the login page", got.status, got.location)
	}
}

// TestLoginRenewsCookie shows that a login changes the ID of the browser's session. An ID planted
// in a victim's browser is therefore useless.
func TestLoginRenewsCookie(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	home, err := url.Parse(w.url)
	must(t, err)
	b := w.browser()
	b.code(c)
	cookie := func(b *browser) string {
		for _, ck := range b.http.Jar.Cookies(home) {
			if ck.Name == "selvage" {
				return ck.Value
			}
		}
		return ""
	}

	planted := cookie(b)
	victim := w.browser()
	victim.http.Jar.SetCookies(home, []*http.Cookie{{Name: "selvage", Value: planted, Path: "/"}})
	page := victim.authorize(request(c, "prompt", "login"))
	victim.logIn(page, email, secret)
	if got := cookie(victim); got == planted || got == "" {
		t.Errorf("the cookie after a login is %q, want a value other than %q, which it had before", got, planted)
	}
}

// TestLogoutAsks shows that a logout without a hint asks the person first.
func TestLogoutAsks(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(withLogout)
	b := w.browser()
	w.redeem(c, b.code(c))

	page := b.get("/oauth/logout")
	if page.location != nil || !strings.Contains(page.body, `id="logout-confirm"`) {
		t.Fatalf("a logout without a hint = %d %v, want the confirmation page", page.status, page.location)
	}

	page = b.get("/oauth/logout?" + url.Values{"client_id": {c.ID}, "post_logout_redirect_uri": {goodbye},
		"state": {`"><script>`}}.Encode())
	if page.location != nil || strings.Contains(page.body, "<script") {
		t.Fatalf("a logout without a hint but with a redirect URI = %d %v %s, want a safe confirmation page",
			page.status, page.location, page.body)
	}

	if got := b.authorize(request(c)); got.param("code") == "" {
		t.Fatalf("a request before the confirmation = %d %v, want a code", got.status, got.location)
	}

	got := b.submit(b.get("/oauth/logout?" +
		url.Values{"client_id": {c.ID}, "post_logout_redirect_uri": {goodbye}, "state": {"x"}}.Encode()))
	if got.location == nil || got.location.String() != goodbye+"?state=x" {
		t.Errorf("confirming the logout = %d %v, want a redirect to the client", got.status, got.location)
	}

	if got := b.authorize(request(c)); got.status != http.StatusOK {
		t.Errorf("a request after the confirmation = %d %v, want the login page", got.status, got.location)
	}
	if got := b.submit(b.get("/logout")); !strings.Contains(got.body, "You are signed out") {
		t.Errorf("confirming a logout without a login = %d %s, want the last page", got.status, got.body)
	}
}

// TestLogoutLooks shows that the pages of a logout have the project's branding if the browser's
// logins identify the project. People can cancel the logout.
func TestLogoutLooks(t *testing.T) {
	w := newWorld(t)
	color := "#106040"
	_, err := w.fabric.Projects.Update(context.Background(), w.project.ID, fabric.ProjectChange{Color: &color})
	must(t, err)
	c, _ := w.client(withLogout)
	b := w.browser()
	w.redeem(c, b.code(c))

	const sheet = `href="/brand/106040.css"`
	account := `id="logout-cancel" href="/account?project=` + w.project.ID + `"`
	asked := b.get("/logout")
	if !strings.Contains(asked.body, sheet) || !strings.Contains(asked.body, account) {
		t.Errorf("the confirmation page lacks the project's color or a link back: %s", asked.body)
	}
	byApp := b.get("/oauth/logout?" + url.Values{"client_id": {c.ID}}.Encode())
	if !strings.Contains(byApp.body, `id="logout-cancel" href="https://`) {
		t.Errorf("the confirmation page for an app lacks the link back to the app: %s", byApp.body)
	}

	if done := b.submit(asked); !strings.Contains(done.body, sheet) || !strings.Contains(done.body, "login-again") {
		t.Errorf("the last page lacks the project's color: %s", done.body)
	}
	if asked := b.get("/logout"); strings.Contains(asked.body, sheet) ||
		!strings.Contains(asked.body, `id="logout-cancel" href="/"`) {
		t.Errorf("without a login, the confirmation page has the branding of a project: %s", asked.body)
	}
}

// TestLogoutOfSomebodyElse shows that a hint for another subscriber does not sign a person out
// without asking.
func TestLogoutOfSomebodyElse(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(withLogout)
	w.subscriber("bob@example.com")
	hint := text(w.tokens(c)["id_token"])
	b := w.browser()
	b.logIn(b.authorize(request(c)), "bob@example.com", secret)
	got := b.get("/oauth/logout?" + url.Values{"id_token_hint": {hint},
		"post_logout_redirect_uri": {goodbye}}.Encode())
	if got.location != nil || !strings.Contains(got.body, `id="logout-confirm"`) {
		t.Errorf("ada's hint in bob's browser: %d %v, want the confirmation page", got.status, got.location)
	}
}

// TestLogoutRefuses shows that invalid logout requests are rejected.
func TestLogoutRefuses(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(withLogout)
	other, _ := w.client(withLogout)
	set := w.tokens(c)
	hint := text(set["id_token"])
	parts := strings.Split(hint, ".")

	tests := []struct {
		name string
		v    url.Values
	}{
		{"unregistered URI", url.Values{"id_token_hint": {hint},
			"post_logout_redirect_uri": {"https://evil.example/"}}},
		{"URI with a query added", url.Values{"id_token_hint": {hint},
			"post_logout_redirect_uri": {goodbye + "?x=1"}}},
		{"URI a prefix", url.Values{"id_token_hint": {hint}, "post_logout_redirect_uri": {goodbye[:len(goodbye)-1]}}},
		{"URI encoded", url.Values{"id_token_hint": {hint},
			"post_logout_redirect_uri": {"https://app.example/%62ye"}}},
		{"URI without a client", url.Values{"post_logout_redirect_uri": {goodbye}}},
		{"another client", url.Values{"id_token_hint": {hint}, "client_id": {other.ID}}},
		{"unknown client", url.Values{"client_id": {"unknown"}}},
		{"unsigned hint", url.Values{"id_token_hint": {parts[0] + "." + parts[1] + "."}}},
		{"a foreign hint", url.Values{"id_token_hint": {"eyJhbGciOiJub25lIn0." + parts[1] + "."}}},
		{"access token as hint", url.Values{"id_token_hint": {text(set["access_token"])}}},
		{"repeated", url.Values{"client_id": {c.ID, c.ID}}},
	}

	for _, tt := range tests {
		if got := w.browser().get("/oauth/logout?" + tt.v.Encode()); got.status != http.StatusBadRequest ||
			got.location != nil {
			t.Errorf("%s: %d to %v, want 400", tt.name, got.status, got.location)
		}
	}
}

// TestRevokeAndIntrospect shows who may introspect and revoke which tokens (RFC 7662, RFC
// 7009).
func TestRevokeAndIntrospect(t *testing.T) {
	w := newWorld(t)
	for _, format := range []idp.TokenFormat{idp.FabricToken, idp.JWTToken} {
		c, s := w.client(func(n *idp.Client) { n.Type, n.AccessToken = idp.Web, format })
		other, otherSecret := w.client(func(n *idp.Client) { n.Type = idp.Web })
		got := w.post("/oauth/token", url.Values{"grant_type": {"authorization_code"},
			"code":         {w.browser().code(c, "scope", "openid offline_access")},
			"redirect_uri": {callback}, "code_verifier": {verifier}}, "Authorization", basic(c.ID, s)).json(t)
		access, refresh := text(got["access_token"]), text(got["refresh_token"])

		introspect := func(id, secret, token string) map[string]any {
			return w.post("/oauth/introspect", url.Values{"token": {token}}, "Authorization",
				basic(id, secret)).json(t)
		}

		// Only the client of a token may introspect it.
		if in := introspect(c.ID, s, access); in["active"] != true || in["sub"] != w.ada.ID ||
			in["client_id"] != c.ID || in["sid"] == nil {
			t.Errorf("%s: introspection %v", format, in)
		}
		for name, in := range map[string]map[string]any{
			"another client": introspect(other.ID, otherSecret, access), "garbage": introspect(c.ID, s, "x"),
			"an ID token": introspect(c.ID, s, text(got["id_token"])),
		} {
			if in["active"] != false || len(in) != 1 {
				t.Errorf("%s: introspection of %s = %v, want only active=false", format, name, in)
			}
		}

		revoke := func(id, secret, token string) {
			t.Helper()
			if got := w.post("/oauth/revoke", url.Values{"token": {token}}, "Authorization",
				basic(id, secret)); got.status != http.StatusOK {
				t.Errorf("%s: revocation: %d %s, want 200", format, got.status, got.body)
			}
		}

		// Other clients cannot revoke the token, and the response does not reveal that.
		revoke(other.ID, otherSecret, access)
		revoke(other.ID, otherSecret, refresh)
		revoke(c.ID, s, "garbage")
		if in := introspect(c.ID, s, access); in["active"] != true {
			t.Errorf("%s: introspection after another client's revocation = %v", format, in)
		}

		revoke(c.ID, s, access)
		if in := introspect(c.ID, s, access); in["active"] != false {
			t.Errorf("%s: introspection after the revocation = %v", format, in)
		}

		revoke(c.ID, s, refresh)
		if got := w.post("/oauth/token",
			url.Values{"grant_type": {"refresh_token"}, "refresh_token": {refresh}}, "Authorization",
			basic(c.ID, s)); got.json(t)["error"] != "invalid_grant" {
			t.Errorf("%s: a refresh with a revoked token = %d %s, want invalid_grant", format, got.status, got.body)
		}
	}
}

// TestRevokeWithoutStore shows that a revocation is not acknowledged if it cannot be written.
func TestRevokeWithoutStore(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	set := w.tokens(c)
	must(t, w.rows.Close())
	got := w.post("/oauth/revoke", url.Values{"token": {text(set["access_token"])}, "client_id": {c.ID}})
	if got.status < 500 {
		t.Errorf("a revocation without a store = %d %s, want a server error", got.status, got.body)
	}
}

// TestSubscriberEnds shows that disabling or deleting a subscriber, or setting a new password, ends
// the subscriber's tokens and logins.
func TestSubscriberEnds(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	for name, end := range map[string]func(id string) error{
		"disabled": func(id string) error {
			_, err := w.fabric.Subscribers.Update(t.Context(), w.project.ID, id, fabricChange(true))
			return err
		},
		"a new password": func(id string) error {
			next := "another password"
			_, err := w.fabric.Subscribers.Update(t.Context(), w.project.ID, id,
				fabric.SubscriberInput{Password: &next})
			return err
		},
		"deleted": func(id string) error { return w.fabric.Subscribers.Delete(t.Context(), w.project.ID, id) },
	} {

		who := strings.ReplaceAll(name, " ", "") + "@example.com"
		s := w.subscriber(who)
		b := w.browser()
		set := w.redeem(c, b.logIn(b.authorize(request(c)), who, secret).param("code")).json(t)
		must(t, end(s.ID))

		// Access token, refresh token and browser login have all ended.
		if got := w.userinfo(text(set["access_token"])); got.status != http.StatusUnauthorized {
			t.Errorf("%s: access token: %d, want 401", name, got.status)
		}
		if got := w.token("grant_type", "refresh_token", "client_id", c.ID, "refresh_token",
			text(set["refresh_token"])); got.json(t)["error"] != "invalid_grant" {
			t.Errorf("%s: refresh token: %d %s, want invalid_grant", name, got.status, got.body)
		}

		w.pass(0)
		if got := b.authorize(request(c)); got.status != http.StatusOK {
			t.Errorf("%s: browser: %d %v, want the login page", name, got.status, got.location)
		}
	}
}

// TestUserinfoRefuses shows which tokens the userinfo endpoint accepts, and in which places of the
// request.
func TestUserinfoRefuses(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(func(n *idp.Client) { n.Scopes = []string{"openid", "Voice", "email"} })
	set := w.tokens(c)

	plain := w.tokens(c, "scope", "Voice")
	if plain["id_token"] != nil {
		t.Errorf("a response without the scope openid has an ID token: %v", plain)
	}

	tests := []struct {
		name, token string
		want        int
	}{
		{"the access token", text(set["access_token"]), 200},
		{"the ID token", text(set["id_token"]), 401},
		{"a refresh token", text(set["refresh_token"]), 401},
		{"without openid", text(plain["access_token"]), 403},
		{"truncated", text(set["access_token"])[:100], 401},
		{"garbage", "x", 401},
		{"two dots", "..", 401},
	}

	for _, tt := range tests {
		got := w.userinfo(tt.token)
		if got.status != tt.want || tt.want == 401 &&
			!strings.Contains(got.header.Get("WWW-Authenticate"), `error="invalid_token", error_description="`) {
			t.Errorf("userinfo with %s: %d %v %s, want %d", tt.name, got.status,
				got.header["Www-Authenticate"], got.body, tt.want)
		}
	}

	// A token must be in the header or in the form.
	for name, got := range map[string]reply{
		"nothing": w.browser().get("/oauth/userinfo"),
		"a query": w.browser().get("/oauth/userinfo?access_token=" + text(set["access_token"])),
	} {
		if got.status != 401 || got.header.Get("WWW-Authenticate") == "" {
			t.Errorf("userinfo with %s: %d, want 401", name, got.status)
		}
	}
	if got := w.browser().post("/oauth/userinfo",
		url.Values{"access_token": {text(set["access_token"])}}); got.status != 200 {
		t.Errorf("userinfo with a form: %d %s, want 200", got.status, got.body)
	}

	w.pass(2*60*60*1e9 + 1e9)
	if got := w.userinfo(text(set["access_token"])); got.status != 401 {
		t.Errorf("userinfo with an expired token: %d, want 401", got.status)
	}
}

// TestDocuments shows that the public documents are cacheable and readable by other origins.
func TestDocuments(t *testing.T) {
	w := newWorld(t)
	for _, path := range []string{"/.well-known/openid-configuration",
		"/.well-known/oauth-authorization-server", "/oauth/jwks"} {
		got := w.browser().get(path)
		if got.status != http.StatusOK ||
			!strings.HasPrefix(got.header.Get("Content-Type"), "application/j") || got.header.Get("ETag") == "" ||
			got.header.Get("Cache-Control") != "public, max-age=300" {
			t.Errorf("GET %s: %d %v", path, got.status, got.header)
		}

		req, err := http.NewRequest(http.MethodGet, w.url+path, nil)
		must(t, err)
		req.Header.Set("If-None-Match", got.header.Get("ETag"))
		req.Header.Set("Origin", "https://app.example")
		if got := w.browser().do(req); got.status != http.StatusNotModified ||
			got.header.Get("Access-Control-Allow-Origin") != "*" ||
			got.header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("GET %s with its ETag: %d %v", path, got.status, got.header)
		}

		if got := w.browser().post(path, nil); got.status != http.StatusMethodNotAllowed {
			t.Errorf("POST %s: %d, want 405", path, got.status)
		}
	}

	doc := w.browser().get("/.well-known/openid-configuration").json(t)
	if doc["issuer"] != w.url+"/" || doc["authorization_response_iss_parameter_supported"] != true ||
		text(doc["code_challenge_methods_supported"]) != "[S256]" {
		t.Errorf("the discovery document is %v", doc)
	}
}

// TestPageHeaders shows that pages may not be framed, cached or read by other origins.
func TestPageHeaders(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	for _, got := range []reply{w.browser().authorize(request(c)), w.browser().get("/login?id=x"),
		w.browser().get("/logout"), w.browser().get("/login/oauth/authorize")} {
		if csp := got.header.Get("Content-Security-Policy"); !strings.Contains(csp, "frame-ancestors 'none'") ||
			got.header.Get("Cache-Control") != "no-store" ||
			got.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("the page has the headers %v, want frame-ancestors 'none', no-store and no CORS", got.header)
		}
	}
}

func fabricChange(disabled bool) fabric.SubscriberInput {
	return fabric.SubscriberInput{Disabled: &disabled}
}

func escaped(s string) string { return template.HTMLEscapeString(s) }

// TestLogoutByPost shows that a logout by POST does not end the login itself. The response
// redirects to a GET, because browsers send no cookies with a POST from another site.
func TestLogoutByPost(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(withLogout)
	b := w.browser()
	set := w.redeem(c, b.code(c)).json(t)
	b.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

	got := b.post("/oauth/logout", url.Values{"state": {"x"}})
	if got.status != http.StatusSeeOther || got.location.Path != "/oauth/logout" ||
		len(got.header["Set-Cookie"]) != 0 {
		t.Errorf("POST without a hint: %d %v %v, want a redirect", got.status, got.location, got.header)
	}
	if got := w.userinfo(text(set["access_token"])); got.status != http.StatusOK {
		t.Errorf("userinfo after a POST without a hint: %d, want 200", got.status)
	}

	again := w.browser().post("/oauth/logout",
		url.Values{"id_token_hint": {text(set["id_token"])}, "post_logout_redirect_uri": {goodbye}})
	if again.location == nil || again.location.String() != goodbye {
		t.Errorf("POST with a hint: %d %v, want a redirect to the client", again.status, again.location)
	}
}

// TestLogoutAfterHangUp shows that a logout is completed even if the caller disconnects.
func TestLogoutAfterHangUp(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	set := w.tokens(c)
	sid := text(idClaims(t, set)["sid"])
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	must(t, w.idp.Logins.End(ctx, sid))
	w.pass(13 * time.Hour) // longer than the session store remembers that a login has ended
	if err := w.idp.Logins.Live(t.Context(), sid); err == nil {
		t.Error("an ended login is valid again")
	}
}
