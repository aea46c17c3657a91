package oidc_test

import (
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/selvage/selvage/idp"
)

// formOf returns the hidden fields of the form on page that posts to action.
func formOf(t *testing.T, page reply, action string) url.Values {
	t.Helper()
	_, rest, found := strings.Cut(page.body, `action="`+action+`"`)
	if !found {
		t.Fatalf("no form that posts to %s: %d %s", action, page.status, page.body)
	}
	rest, _, _ = strings.Cut(rest, "</form>")
	form := url.Values{}
	for _, m := range hiddenField.FindAllStringSubmatch(rest, -1) {
		form.Set(m[1], html.UnescapeString(m[2]))
	}
	return form
}

// TestFormTokens shows that each form that changes something is bound to the browser in which it
// was shown. Without its token, or with another browser's token, the form has no effect.
func TestFormTokens(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	third, _ := w.client(func(c *idp.Client) { c.FirstParty = false })

	b, other := w.browser(), w.browser()
	b.code(c)
	other.code(c)
	d := w.device(w.tv())

	forms := []struct {
		page, action, field string
		more                []string
	}{
		{"/login/oauth/authorize?" + request(c, "prompt", "login").Encode(), "/login", "id",
			[]string{"username", email, "password", secret}},
		{"/login/oauth/authorize?" + request(c, "prompt", "select_account").Encode(), "/accounts", "id", nil},
		{"/login/oauth/authorize?" + request(third).Encode(), "/consent", "id", []string{"answer", "allow"}},
		{"/device", "/device", "token", []string{"user_code", d.user}},
		{"/logout", "/logout", "token", nil},
		{"/account", "/account/profile", "token", []string{"first_name", "Eve"}},
		{"/account", "/account/sessions/end", "token", nil},
		{"/account", "/account/sessions/end-all", "token", nil},
	}

	for _, tt := range forms {
		theirs := formOf(t, other.get(tt.page), tt.action).Get(tt.field)
		for name, token := range map[string]string{"without a token": "",
			"with an empty one's neighbour": "x", "with another browser's": theirs} {
			form := with(formOf(t, b.get(tt.page), tt.action), append(tt.more, tt.field, token)...)
			if token == "x" && tt.field == "id" {
				continue // the response is the same as for an expired request, which may be harmless
			}
			got := b.post(tt.action, form)
			if got.status != http.StatusForbidden || len(got.header["Set-Cookie"]) != 0 {
				t.Errorf("%s %s: %d %v, want 403", tt.action, name, got.status, got.header["Set-Cookie"])
			}
		}

		stranger := w.browser() // without any cookies
		if got := stranger.post(tt.action,
			with(formOf(t, b.get(tt.page), tt.action), tt.more...)); got.status != http.StatusForbidden &&
			!strings.HasPrefix(tt.action, "/account/") {
			t.Errorf("%s without cookies: %d, want 403", tt.action, got.status)
		}

		if !b.signedIn(c) || !other.signedIn(c) {
			t.Fatalf("%s: a login was ended", tt.action)
		}
	}

	// Nothing was changed.
	if sub, err := w.rows.FindSubscriber(t.Context(), w.project.ID, w.ada.ID); err != nil ||
		sub.FirstName != w.ada.FirstName {
		t.Errorf("the subscriber is %+v, %v, want no change", sub, err)
	}
	d.wants("after all forms", "authorization_pending")
}
