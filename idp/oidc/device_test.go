package oidc_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/idp/oidc"
	"github.com/selvage/selvage/internal/problem"
)

// A device is an app without a browser, and the codes that it received.
type device struct {
	w          *world
	c          idp.Client
	code, user string
	complete   string // path of the link that the device shows as a QR code
}

// tv registers a client for devices.
func (w *world) tv() idp.Client {
	w.t.Helper()
	c, _ := w.client(func(n *idp.Client) {
		n.Name, n.Type = "TV", idp.Native
		n.RedirectURIs, n.Grants = nil, []string{idp.GrantDevice, idp.GrantRefresh}
	})
	return c
}

func (w *world) device(c idp.Client) device {
	w.t.Helper()
	got := w.post("/oauth/device_authorization",
		url.Values{"client_id": {c.ID}, "scope": {"openid email offline_access"}})
	if got.status != http.StatusOK {
		w.t.Fatalf("device authorization: %d %s, want 200", got.status, got.body)
	}
	v := got.json(w.t)
	return device{w, c, text(v["device_code"]), text(v["user_code"]),
		strings.TrimPrefix(text(v["verification_uri_complete"]), w.url)}
}

// poll requests the tokens.
func (d device) poll(pairs ...string) reply {
	d.w.t.Helper()
	return d.w.token(append([]string{"grant_type", idp.GrantDevice, "client_id", d.c.ID, "device_code",
		d.code}, pairs...)...)
}

// wants polls, and reports a test error unless the response is an error with this code. If code is
// "", the response must be a success.
func (d device) wants(when, code string) map[string]any {
	d.w.t.Helper()
	got := d.poll()
	v := got.json(d.w.t)
	if (got.status == http.StatusOK) != (code == "") || got.status != http.StatusOK &&
		got.status != http.StatusBadRequest || code != "" && v["error"] != code {
		d.w.t.Errorf("polling %s: %d %s, want %q", when, got.status, got.body, code)
	}
	return v
}

// enter types a user code.
func (b *browser) enter(code string) reply {
	b.w.t.Helper()
	return b.post("/device", url.Values{"token": {b.pageToken("/device")}, "user_code": {code}})
}

// confirmation enters the code of a device, signs ada in if necessary, and returns the confirmation
// page.
func (b *browser) confirmation(d device) reply {
	b.w.t.Helper()
	page := b.enter(d.user)
	if strings.Contains(page.body, `id="login-submit"`) {
		page = b.logIn(page, email, secret)
	}
	if page.status != http.StatusOK || !strings.Contains(page.body, `id="device-warning"`) {
		b.w.t.Fatalf("no confirmation page: %d %s", page.status, page.body)
	}
	return page
}

// TestDevice runs the whole device flow, from the codes to the tokens (RFC 8628).
func TestDevice(t *testing.T) {
	w := newWorld(t)
	c := w.tv()
	b := w.browser()
	d := w.device(c)

	if !regexp.MustCompile(`^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$`).MatchString(d.user) ||
		len(d.code) < 43 {
		t.Fatalf("the codes are %q and %q", d.user, d.code)
	}

	// The link fills in the code. A code may also be typed in another form.
	d.wants("before the code is entered", "authorization_pending")
	linked := b.get(d.complete)
	if linked.status != http.StatusOK || !strings.Contains(linked.body, `value="`+d.user+`"`) {
		t.Errorf("the link of the QR code: %d %s, want the form with the code", linked.status, linked.body)
	}

	page := b.enter(strings.ToLower(strings.ReplaceAll(d.user, "-", " ")))
	if !strings.Contains(page.body, "to continue to <strong>TV</strong>") {
		t.Fatalf("no login page after the code was entered: %d %s", page.status, page.body)
	}

	// The confirmation page shows the app, the account and the code.
	page = b.logIn(page, email, secret)
	for _, want := range []string{"<strong>TV</strong>", email, d.user} {
		if !strings.Contains(page.body, want) {
			t.Errorf("the confirmation page does not have %s: %s", want, page.body)
		}
	}

	// The device gets its tokens after the person has consented.
	w.pass(5 * time.Second)
	d.wants("while the page is open", "authorization_pending")
	if done := b.consent(page, "allow"); done.status != http.StatusOK ||
		!strings.Contains(done.body, `id="device-done"`) {
		t.Fatalf("allowing: %d %s, want the last page", done.status, done.body)
	}

	set := d.wants("after the person consented", "")
	if set["scope"] != "openid email offline_access" || set["refresh_token"] == nil {
		t.Errorf("tokens of a device: %v", set)
	}

	if id := idClaims(t, set); id["sub"] != w.ada.ID || id["aud"] != c.ID || id["sid"] == nil {
		t.Errorf("ID token of a device: %v, want sub, aud and sid", id)
	}
	if got := w.userinfo(text(set["access_token"])); got.json(t)["email"] != email {
		t.Errorf("userinfo: %d %s, want the email", got.status, got.body)
	}
	if got := w.refresh(c, text(set["refresh_token"])); got.status != http.StatusOK {
		t.Errorf("refresh: %d %s, want 200", got.status, got.body)
	}

	// Each device must be confirmed, even if the browser is signed in and has already confirmed
	// another device.
	second := w.device(c)
	if got := b.consent(b.confirmation(second), "allow"); got.status != http.StatusOK {
		t.Errorf("a second device: %d %s, want 200", got.status, got.body)
	}
	second.wants("for the second device", "")

	// A replayed device code revokes the device's tokens.
	d.wants("after the device code was redeemed", "invalid_grant")
	if got := w.userinfo(text(set["access_token"])); got.status != http.StatusUnauthorized {
		t.Errorf("userinfo after the device code was replayed: %d, want 401", got.status)
	}
}

// TestDeviceAuthorizationRefuses shows that invalid requests for codes are rejected.
func TestDeviceAuthorizationRefuses(t *testing.T) {
	w := newWorld(t)
	tv := w.tv()
	spa, _ := w.client(nil)
	web, _ := w.client(func(n *idp.Client) {
		n.Type, n.Grants, n.RedirectURIs = idp.Web, []string{idp.GrantDevice}, nil
	})

	for name, tt := range map[string]struct {
		form   url.Values
		status int
		code   string
	}{
		"a client without the grant": {url.Values{"client_id": {spa.ID}, "scope": {"openid"}}, 400,
			"unauthorized_client"},
		"no client_id": {url.Values{"scope": {"openid"}}, 401, "invalid_client"},
		"an unknown client": {url.Values{"client_id": {"x"}, "scope": {"openid"}}, 401,
			"invalid_client"},
		"a client without its secret": {url.Values{"client_id": {web.ID}, "scope": {"openid"}}, 401,
			"invalid_client"},
		"no scope": {url.Values{"client_id": {tv.ID}}, 400, "invalid_scope"},
		"a scope that is not registered": {url.Values{"client_id": {tv.ID}, "scope": {"Voice"}}, 400,
			"invalid_scope"},
		"a duplicate parameter": {url.Values{"client_id": {tv.ID}, "scope": {"openid", "openid"}},
			400, "invalid_request"},
	} {
		if got := w.post("/oauth/device_authorization", tt.form); got.status != tt.status ||
			got.json(t)["error"] != tt.code {
			t.Errorf("%s: %d %s, want %d %s", name, got.status, got.body, tt.status, tt.code)
		}
	}

	if got := w.browser().get("/oauth/device_authorization?client_id=" +
		tv.ID); got.status != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d, want 405", got.status)
	}
	if got := w.token("grant_type", idp.GrantDevice, "client_id", spa.ID, "device_code",
		"x"); got.json(t)["error"] != "unauthorized_client" {
		t.Errorf("polling without the grant: %d %s, want unauthorized_client", got.status, got.body)
	}
}

// TestDevicePolls shows how frequently a device may poll, and which errors it gets.
func TestDevicePolls(t *testing.T) {
	w := newWorld(t)
	other := w.tv()

	d := w.device(w.tv())
	d.wants("first", "authorization_pending")
	d.wants("again, too early", "slow_down")
	w.pass(6 * time.Second)
	d.wants("after 6 seconds, slowed down once", "slow_down")
	w.pass(15 * time.Second)
	d.wants("after 15 seconds, slowed down twice", "authorization_pending")

	if got := d.poll("client_id", other.ID); got.json(t)["error"] != "invalid_grant" {
		t.Errorf("polling by another client: %d %s, want invalid_grant", got.status, got.body)
	}
	for _, code := range []string{"x", strings.Repeat("x", 10_000)} {
		if got := d.poll("device_code", code); got.json(t)["error"] != "invalid_grant" {
			t.Errorf("polling with the device code %.5q: %d %s, want invalid_grant", code, got.status, got.body)
		}
	}
	if got := d.poll("device_code", ""); got.json(t)["error"] != "invalid_request" {
		t.Errorf("polling without a device code: %d %s, want invalid_request", got.status, got.body)
	}

	w.pass(10 * time.Minute)
	d.wants("after the code expired", "expired_token")
	w.pass(10 * time.Minute)
	d.wants("long after the code expired", "invalid_grant")
}

// TestDeviceDenied shows that a denial is final.
func TestDeviceDenied(t *testing.T) {
	w := newWorld(t)
	d := w.device(w.tv())
	b := w.browser()

	page := b.confirmation(d)
	if got := b.consent(page, "deny"); got.status != http.StatusOK ||
		!strings.Contains(got.body, `id="device-denied"`) {
		t.Errorf("denying: %d %s, want the page about the denial", got.status, got.body)
	}

	for range 2 {
		d.wants("after the denial", "access_denied")
	}

	if got := b.consent(page, "allow"); got.status != http.StatusBadRequest {
		t.Errorf("answering the page again: %d, want 400", got.status)
	}
	if got := b.enter(d.user); got.status != http.StatusUnprocessableEntity {
		t.Errorf("entering the code again: %d, want 422", got.status)
	}
	d.wants("after the denial and a late approval", "access_denied")
}

// TestDeviceAtNodes shows that each step may reach another node. Of two concurrent answers, one
// counts. Of fifty concurrent polls, one gets tokens. The session store never contains codes.
func TestDeviceAtNodes(t *testing.T) {
	w := newWorld(t)
	other := w.second()
	api, err := oidc.New(oidc.Config{Provider: other, Sessions: other.Sessions, Browsers: w.rows, AuthURL: w.url})
	must(t, err)
	second := httptest.NewServer(api.Handler())
	t.Cleanup(second.Close)

	// Each step is sent to the other node.
	first := w.url
	c := w.tv()
	d := w.device(c)
	w.url = second.URL
	b := w.browser()
	page := b.enter(d.user)
	w.url = first
	page = b.logIn(page, email, secret)
	w.url = second.URL

	for _, entry := range w.entries() {
		for _, code := range []string{d.code, d.user, strings.ReplaceAll(d.user, "-", "")} {
			if strings.Contains(entry, code) {
				t.Errorf("the session store contains %s: %s", code, entry)
			}
		}
	}

	if got := b.consent(page, "allow"); got.status != http.StatusOK {
		t.Fatalf("allowing on another node: %d %s, want 200", got.status, got.body)
	}
	w.url = first
	d.wantsOneOfMany(other)
}

// wantsOneOfMany polls fifty times concurrently, on two nodes. It checks that only one poll gets
// tokens.
func (d device) wantsOneOfMany(other *idp.Provider) {
	d.w.t.Helper()

	var mu sync.Mutex
	var wg sync.WaitGroup
	outcomes := make(map[string]int)

	for i := range 50 {
		wg.Go(func() {
			p := d.w.idp
			if i%2 == 1 {
				p = other
			}
			_, err := p.Devices.Redeem(context.Background(), d.c, d.code, nil, "")
			mu.Lock()
			defer mu.Unlock()
			if known := problem.First(err); known != nil {
				outcomes[known.Code]++
			} else {
				outcomes[text(err)]++
			}
		})
	}

	wg.Wait()
	if outcomes["<nil>"] != 1 || outcomes["invalid_grant"]+outcomes["slow_down"] != 49 {
		d.w.t.Errorf("fifty concurrent polls get %v, want one with tokens", outcomes)
	}
}

// TestDeviceWithKey shows that a device may authenticate with an assertion whose audience is the
// endpoint.
func TestDeviceWithKey(t *testing.T) {
	w := newWorld(t)
	p := w.party(t, jose.ES256)
	p.c.Grants, p.c.Scopes = append(p.c.Grants, idp.GrantDevice), []string{"openid"}
	must(t, w.rewrite(p.c))
	for aud, want := range map[string]int{w.url + "/oauth/device_authorization": http.StatusOK,
		w.url + "/device": http.StatusUnauthorized} {
		got := w.post("/oauth/device_authorization", url.Values{
			"scope": {"openid"}, "client_assertion": {p.assertion(t, "aud", aud)},
			"client_assertion_type": {idp.AssertionType},
		})
		if got.status != want {
			t.Errorf("an assertion for %s: %d %s, want %d", aud, got.status, got.body, want)
		}
	}
}
