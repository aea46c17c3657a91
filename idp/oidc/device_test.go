package oidc_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/selvage/selvage/idp"
)

// A device is an app without a browser, and the codes that it received.
type device struct {
	w        *world
	c        idp.Client
	code     string
	userCode string
	complete string // path of the link that the device shows as a QR code
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

// newDevice requests the codes for a device of the client c.
func (w *world) newDevice(c idp.Client) device {
	w.t.Helper()
	form := url.Values{"client_id": {c.ID}, "scope": {"openid email offline_access"}}
	got := w.post("/oauth/device_authorization", form)
	if got.status != http.StatusOK {
		w.t.Fatalf("device authorization: status %d, want 200: %s", got.status, got.body)
	}
	codes := got.json(w.t)
	return device{
		w:        w,
		c:        c,
		code:     text(codes["device_code"]),
		userCode: text(codes["user_code"]),
		complete: strings.TrimPrefix(text(codes["verification_uri_complete"]), w.url),
	}
}

// poll asks the token endpoint for the device's tokens.
func (d device) poll(pairs ...string) reply {
	d.w.t.Helper()
	form := url.Values{"grant_type": {idp.GrantDevice}, "client_id": {d.c.ID}, "device_code": {d.code}}
	return d.w.post("/oauth/token", with(form, pairs...))
}

// wantsError polls, and fails the test unless the response is this error.
func (d device) wantsError(when, code string) {
	d.w.t.Helper()
	got := d.poll()
	wantStatus(d.w.t, "polling "+when, got, http.StatusBadRequest)
	wantError(d.w.t, "polling "+when, got, code)
}

// wantsTokens polls, and returns the tokens in the response.
func (d device) wantsTokens(when string) map[string]any {
	d.w.t.Helper()
	got := d.poll()
	wantStatus(d.w.t, "polling "+when, got, http.StatusOK)
	return got.json(d.w.t)
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
	page := b.enter(d.userCode)
	if strings.Contains(page.body, `id="login-submit"`) {
		page = b.logIn(page, email, secret)
	}
	wantStatus(b.w.t, "the confirmation page", page, http.StatusOK)
	wantText(b.w.t, "the confirmation page", page, `id="device-warning"`)
	return page
}

// TestDevice runs the whole device flow, from the codes to the tokens (RFC 8628).
func TestDevice(t *testing.T) {
	w := newWorld(t)
	c := w.tv()
	b := w.newBrowser()
	d := w.newDevice(c)

	pattern := regexp.MustCompile(`^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$`)
	if !pattern.MatchString(d.userCode) {
		t.Fatalf("the user code is %q, want two groups of four consonants", d.userCode)
	}
	if len(d.code) < 43 {
		t.Fatalf("the device code is %q, want at least 43 characters", d.code)
	}

	// The link fills in the code. A typed code may be in lower case, with a space instead of the hyphen.
	d.wantsError("before the code is entered", "authorization_pending")
	linked := b.get(d.complete)
	wantStatus(t, "the link of the QR code", linked, http.StatusOK)
	wantText(t, "the link of the QR code", linked, `value="`+d.userCode+`"`)
	page := b.enter(strings.ToLower(strings.ReplaceAll(d.userCode, "-", " ")))
	wantText(t, "the page after the code", page, "to continue to <strong>TV</strong>")

	// The confirmation page shows the app, the account and the code.
	page = b.logIn(page, email, secret)
	wantText(t, "the confirmation page", page, "<strong>TV</strong>", email, d.userCode)

	// The device gets its tokens after the person has consented.
	w.pass(5 * time.Second)
	d.wantsError("while the page is open", "authorization_pending")
	done := b.consent(page, "allow")
	wantStatus(t, "allowing", done, http.StatusOK)
	wantText(t, "allowing", done, `id="device-done"`)

	tokens := d.wantsTokens("after the person consented")
	if tokens["scope"] != "openid email offline_access" {
		t.Errorf("the scope is %v, want openid email offline_access", tokens["scope"])
	}
	id := idClaims(t, tokens)
	if id["sub"] != w.ada.ID {
		t.Errorf("the sub in the ID token is %v, want %s", id["sub"], w.ada.ID)
	}
	if id["aud"] != c.ID {
		t.Errorf("the aud in the ID token is %v, want %s", id["aud"], c.ID)
	}
	if id["sid"] == nil {
		t.Error("the ID token has no sid, want one")
	}
	if got := w.userinfo(text(tokens["access_token"])).json(t); got["email"] != email {
		t.Errorf("the email in userinfo is %v, want %s", got["email"], email)
	}
	wantStatus(t, "a refresh", w.refresh(c, text(tokens["refresh_token"])), http.StatusOK)

	// Each device must be confirmed, even if the browser is signed in and has already confirmed
	// another device.
	second := w.newDevice(c)
	wantStatus(t, "a second device", b.consent(b.confirmation(second), "allow"), http.StatusOK)
	second.wantsTokens("for the second device")

	// A replayed device code revokes the device's tokens.
	d.wantsError("after the device code was redeemed", "invalid_grant")
	info := w.userinfo(text(tokens["access_token"]))
	wantStatus(t, "userinfo after the device code was replayed", info, http.StatusUnauthorized)
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
		form       url.Values
		wantStatus int
		wantError  string
	}{
		"a client without the grant": {
			form:       url.Values{"client_id": {spa.ID}, "scope": {"openid"}},
			wantStatus: http.StatusBadRequest,
			wantError:  "unauthorized_client",
		},
		"no client_id": {
			form:       url.Values{"scope": {"openid"}},
			wantStatus: http.StatusUnauthorized,
			wantError:  "invalid_client",
		},
		"an unknown client": {
			form:       url.Values{"client_id": {"x"}, "scope": {"openid"}},
			wantStatus: http.StatusUnauthorized,
			wantError:  "invalid_client",
		},
		"a client without its secret": {
			form:       url.Values{"client_id": {web.ID}, "scope": {"openid"}},
			wantStatus: http.StatusUnauthorized,
			wantError:  "invalid_client",
		},
		"no scope": {
			form:       url.Values{"client_id": {tv.ID}},
			wantStatus: http.StatusBadRequest,
			wantError:  "invalid_scope",
		},
		"a scope that is not registered": {
			form:       url.Values{"client_id": {tv.ID}, "scope": {"Voice"}},
			wantStatus: http.StatusBadRequest,
			wantError:  "invalid_scope",
		},
		"a duplicate parameter": {
			form:       url.Values{"client_id": {tv.ID}, "scope": {"openid", "openid"}},
			wantStatus: http.StatusBadRequest,
			wantError:  "invalid_request",
		},
	} {
		got := w.post("/oauth/device_authorization", tt.form)
		wantStatus(t, name, got, tt.wantStatus)
		wantError(t, name, got, tt.wantError)
	}

	got := w.newBrowser().get("/oauth/device_authorization?client_id=" + tv.ID)
	wantStatus(t, "GET", got, http.StatusMethodNotAllowed)
	poll := w.token("grant_type", idp.GrantDevice, "client_id", spa.ID, "device_code", "x")
	wantError(t, "polling without the grant", poll, "unauthorized_client")
}

// TestDevicePolls shows how frequently a device may poll, and which errors it gets.
func TestDevicePolls(t *testing.T) {
	w := newWorld(t)
	other := w.tv()

	d := w.newDevice(w.tv())
	d.wantsError("first", "authorization_pending")
	d.wantsError("again, too early", "slow_down")
	w.pass(6 * time.Second)
	d.wantsError("after 6 seconds, slowed down once", "slow_down")
	w.pass(15 * time.Second)
	d.wantsError("after 15 seconds, slowed down twice", "authorization_pending")

	wantError(t, "polling by another client", d.poll("client_id", other.ID), "invalid_grant")
	wantError(t, "polling with an unknown code", d.poll("device_code", "x"), "invalid_grant")
	long := d.poll("device_code", strings.Repeat("x", 10_000))
	wantError(t, "polling with a long code", long, "invalid_grant")
	wantError(t, "polling without a code", d.poll("device_code", ""), "invalid_request")

	w.pass(10 * time.Minute)
	d.wantsError("after the code expired", "expired_token")
	w.pass(10 * time.Minute)
	d.wantsError("long after the code expired", "invalid_grant")
}

// TestDeviceDenied shows that a denial is final.
func TestDeviceDenied(t *testing.T) {
	w := newWorld(t)
	d := w.newDevice(w.tv())
	b := w.newBrowser()

	page := b.confirmation(d)
	denied := b.consent(page, "deny")
	wantStatus(t, "denying", denied, http.StatusOK)
	wantText(t, "denying", denied, `id="device-denied"`)
	for range 2 {
		d.wantsError("after the denial", "access_denied")
	}

	wantStatus(t, "answering the page again", b.consent(page, "allow"), http.StatusBadRequest)
	wantStatus(t, "entering the code again", b.enter(d.userCode), http.StatusUnprocessableEntity)
	d.wantsError("after the denial and a late approval", "access_denied")
}

// TestDeviceWithKey shows that a device may authenticate with an assertion whose audience is the
// endpoint.
func TestDeviceWithKey(t *testing.T) {
	w := newWorld(t)
	p := w.newParty(t, jose.ES256)
	p.c.Grants, p.c.Scopes = append(p.c.Grants, idp.GrantDevice), []string{"openid"}
	must(t, w.rewrite(p.c))
	for path, want := range map[string]int{
		"/oauth/device_authorization": http.StatusOK,
		"/device":                     http.StatusUnauthorized,
	} {
		got := w.post("/oauth/device_authorization", url.Values{
			"scope":                 {"openid"},
			"client_assertion":      {p.assertion(t, "aud", w.url+path)},
			"client_assertion_type": {idp.AssertionType},
		})
		wantStatus(t, "an assertion for "+path, got, want)
	}
}
