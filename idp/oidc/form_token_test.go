package oidc_test

import (
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
	return reply{body: rest}.hiddenFields()
}

// TestFormTokens shows that each form that changes something is bound to the browser in which it
// was shown. Without its token, or with another browser's token, the form has no effect.
func TestFormTokens(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	third, _ := w.client(func(c *idp.Client) { c.FirstParty = false })

	b, other := w.newBrowser(), w.newBrowser()
	b.code(c)
	other.code(c)
	d := w.newDevice(w.tv())

	loginPage := "/login/oauth/authorize?" + request(c, "prompt", "login").Encode()
	chooser := "/login/oauth/authorize?" + request(c, "prompt", "select_account").Encode()
	consentPage := "/login/oauth/authorize?" + request(third).Encode()
	for _, tt := range []struct {
		page, action string
		tokenField   string
		fields       []string
	}{
		{loginPage, "/login", "id", []string{"username", email, "password", secret}},
		{chooser, "/accounts", "id", nil},
		{consentPage, "/consent", "id", []string{"answer", "allow"}},
		{"/device", "/device", "token", []string{"user_code", d.userCode}},
		{"/logout", "/logout", "token", nil},
		{"/account", "/account/profile", "token", []string{"first_name", "Eve"}},
		{"/account", "/account/sessions/end", "token", nil},
		{"/account", "/account/sessions/end-all", "token", nil},
	} {
		tokens := map[string]string{
			"without a token":        "",
			"with another browser's": formOf(t, other.get(tt.page), tt.action).Get(tt.tokenField),
		}
		if tt.tokenField == "token" { // a wrong id gets the same response as an expired request
			tokens["with a wrong token"] = "x"
		}
		for name, token := range tokens {
			form := with(formOf(t, b.get(tt.page), tt.action), tt.fields...)
			got := b.post(tt.action, with(form, tt.tokenField, token))
			wantStatus(t, tt.action+" "+name, got, http.StatusForbidden)
			wantHeader(t, tt.action+" "+name, got, "Set-Cookie", "")
		}

		// On the account page, a browser without cookies is asked to sign in.
		if !strings.HasPrefix(tt.action, "/account/") {
			form := with(formOf(t, b.get(tt.page), tt.action), tt.fields...)
			wantStatus(t, tt.action+" without cookies", w.newBrowser().post(tt.action, form), http.StatusForbidden)
		}
		wantSignedIn(t, "the browser after "+tt.action, b, c, true)
		wantSignedIn(t, "the other browser after "+tt.action, other, c, true)
	}

	sub, err := w.rows.FindSubscriber(t.Context(), w.project.ID, w.ada.ID)
	must(t, err)
	if sub.FirstName != w.ada.FirstName {
		t.Errorf("the first name is %q, want %q", sub.FirstName, w.ada.FirstName)
	}
	d.wantsError("after all forms", "authorization_pending")
}
