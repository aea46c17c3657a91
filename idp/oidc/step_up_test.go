package oidc_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/factor/factortest"
)

// TestStepUp shows that a login with only a password can be raised by a second factor if a request
// requires it.
func TestStepUp(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	for _, asked := range []struct{ param, value string }{
		{param: "acr_values", value: "2"},
		{param: "claims", value: `{"id_token":{"acr":{"essential":true,"value":"2"}}}`},
	} {
		_ = w.idp.Factors.Remove(t.Context(), idp.OwnerOf(w.ada.ID), w.appID())
		b := w.newBrowser()
		low := idClaims(t, w.redeem(c, b.code(c)).json(t))
		before := b.cookie()
		key := w.app()

		// With prompt=none, the request fails. Requests that need only one factor still succeed.
		silent := b.authorize(request(c, asked.param, asked.value, "prompt", "none"))
		wantParam(t, "prompt=none before the second factor", silent, "error", "login_required")
		wantCode(t, "a request that needs only one factor", b.authorize(request(c, "acr_values", "1")))

		// The person is asked only for the second factor, and cannot skip it.
		page := b.authorize(request(c, asked.param, asked.value))
		wantText(t, "asking for "+asked.param, page, "one-time-code")
		wantNoText(t, "asking for "+asked.param, page, `id="password"`)
		skipped := b.get("/consent?id=" + hiddenID.FindStringSubmatch(page.body)[1])
		wantStatus(t, "skipping the page", skipped, http.StatusBadRequest)

		// The login keeps its id and gets a new cookie.
		got := b.enterCode(page, factortest.Code(key, w.now()))
		high := idClaims(t, w.redeem(c, got.param("code")).json(t))
		if high["acr"] != "2" {
			t.Errorf("after the second factor, the acr is %v, want 2", high["acr"])
		}
		for _, claim := range []string{"sid", "auth_time"} {
			if high[claim] != low[claim] {
				t.Errorf("after the second factor, the %s is %v, want %v as before", claim, high[claim], low[claim])
			}
		}
		if after := b.cookie(); after == "" || after == before {
			t.Errorf("after the second factor, the cookie is %q, want one other than %q", after, before)
		}

		silent = b.authorize(request(c, asked.param, asked.value, "prompt", "none"))
		wantCode(t, "prompt=none after the second factor", silent)
	}
}

// TestStepUpTooLate shows that a person whose login becomes older than max_age on the page for the second
// factor signs in again, and that the request then continues.
func TestStepUpTooLate(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	b := w.newBrowser()
	b.code(c)
	key := w.app()

	page := b.authorize(request(c, "acr_values", "2", "max_age", "120"))
	wantText(t, "a login that is recent enough", page, "one-time-code")
	w.pass(2 * time.Minute)
	again := b.enterCode(page, factortest.Code(key, w.now()))
	wantText(t, "a code after max_age", again, `id="login-submit"`)

	began := w.now()
	page = b.logIn(again, email, secret)
	w.pass(time.Minute) // the next code is then different
	got := b.enterCode(page, factortest.Code(key, w.now()))
	id := idClaims(t, w.redeem(c, got.param("code")).json(t))
	if at, _ := id["auth_time"].(float64); at < float64(began.Unix()) {
		t.Errorf("signing in again: auth_time is %v, want %d or later", id["auth_time"], began.Unix())
	}
}

// TestPreferredFactor shows that a request that prefers two factors, but also accepts one, asks for
// the second factor if a page may be shown. With prompt=none, it succeeds without the factor.
func TestPreferredFactor(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	b := w.newBrowser()
	b.code(c)
	w.app()
	for _, asked := range []struct{ param, value string }{
		{param: "acr_values", value: "2 1"},
		{param: "claims", value: `{"id_token":{"acr":{"value":"2"}}}`},
	} {
		page := b.authorize(request(c, asked.param, asked.value))
		wantText(t, "asking for "+asked.param, page, "one-time-code")

		silent := b.authorize(request(c, asked.param, asked.value, "prompt", "none"))
		wantCode(t, "asking for "+asked.param+" with prompt=none", silent)
		if id := idClaims(t, w.redeem(c, silent.param("code")).json(t)); id["acr"] != "1" {
			t.Errorf("asking for %s with prompt=none: the acr is %v, want 1", asked.param, id["acr"])
		}
	}
}

// cookie returns the browser's session cookie, or "".
func (b *browser) cookie() string {
	home, err := url.Parse(b.w.url)
	must(b.w.t, err)
	for _, cookie := range b.http.Jar.Cookies(home) {
		if strings.HasSuffix(cookie.Name, "selvage") {
			return cookie.Value
		}
	}
	return ""
}
