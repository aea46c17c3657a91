package oidc_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/idp"
)

// TestUserinfoRefuses shows which tokens the userinfo endpoint accepts, and where in the request they
// must be.
func TestUserinfoRefuses(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(func(n *idp.Client) { n.Scopes = []string{"openid", "Voice", "email"} })
	set := w.tokens(c)

	plain := w.tokens(c, "scope", "Voice")
	if plain["id_token"] != nil {
		t.Errorf("a response without the scope openid has an ID token: %v", plain)
	}

	const refused = `error="invalid_token", error_description="`
	for _, tt := range []struct {
		name, token   string
		wantStatus    int
		wantChallenge string // part of WWW-Authenticate
	}{
		{name: "the access token", token: text(set["access_token"]), wantStatus: 200},
		{name: "the ID token", token: text(set["id_token"]), wantStatus: 401, wantChallenge: refused},
		{name: "a refresh token", token: text(set["refresh_token"]), wantStatus: 401, wantChallenge: refused},
		{name: "without openid", token: text(plain["access_token"]), wantStatus: 403},
		{name: "truncated", token: text(set["access_token"])[:100], wantStatus: 401, wantChallenge: refused},
		{name: "garbage", token: "x", wantStatus: 401, wantChallenge: refused},
		{name: "two dots", token: "..", wantStatus: 401, wantChallenge: refused},
	} {
		got := w.userinfo(tt.token)
		wantStatus(t, tt.name, got, tt.wantStatus)
		if challenge := got.header.Get("WWW-Authenticate"); !strings.Contains(challenge, tt.wantChallenge) {
			t.Errorf("%s: WWW-Authenticate %q, want %s in it", tt.name, challenge, tt.wantChallenge)
		}
	}

	// A token must be in the header or in the form.
	for name, got := range map[string]reply{
		"no token": w.newBrowser().get("/oauth/userinfo"),
		"a query":  w.newBrowser().get("/oauth/userinfo?access_token=" + text(set["access_token"])),
	} {
		wantStatus(t, name, got, http.StatusUnauthorized)
		if got.header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s: no WWW-Authenticate, want one", name)
		}
	}
	form := url.Values{"access_token": {text(set["access_token"])}}
	wantStatus(t, "a form", w.newBrowser().post("/oauth/userinfo", form), http.StatusOK)
	wrong := w.newBrowser().post("/oauth/userinfo", url.Values{"access_token": {"x"}})
	wantStatus(t, "a form with a wrong token", wrong, http.StatusUnauthorized)
	if challenge := wrong.header.Get("WWW-Authenticate"); !strings.Contains(challenge, refused) {
		t.Errorf("a form with a wrong token: WWW-Authenticate %q, want %s in it", challenge, refused)
	}

	w.pass(2*time.Hour + time.Second)
	expired := w.userinfo(text(set["access_token"]))
	wantStatus(t, "an expired token", expired, http.StatusUnauthorized)
}
