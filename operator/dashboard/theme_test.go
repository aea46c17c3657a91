package dashboard_test

import (
	"net/url"
	"testing"
)

// TestThemeKeepsSecrets shows that a page with a secret that is shown only once does not offer to
// change the theme or the language, because that would load another page. Other pages offer this,
// even if they describe errors in a form.
func TestThemeKeepsSecrets(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	base := "/dashboard/projects/" + w.one.ID
	keys := base + "/keys"
	const theme, language = `action="/dashboard/account/theme"`, `action="/dashboard/language"`

	b.get(keys+"/new").wantText(t, theme, language)
	b.post(keys+"/new", keys, url.Values{"name": {"no scope"}}).wantRefused(t, theme, language)
	form := url.Values{"name": {"billing"}, "scope": {"Voice"}}
	made := b.post(keys+"/new", keys, form)
	secret := made.find(t, shownSecret)
	made.wantNoText(t, theme, language)

	// The old secret cannot be ended, so the page shows the error together with the secret.
	at := keys + "/" + made.find(t, `action="`+keys+`/([^/"]+)/rotate"`)
	refused := b.post(at, at+"/old-secret", url.Values{"secret": {secret}, "seen": {"other"}})
	refused.wantRefused(t, secret)
	refused.wantNoText(t, theme, language)
}

// TestTheme shows that the browser remembers the theme, and that choosing a theme leads back to the
// same page, without a script.
func TestTheme(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	for _, tt := range []struct{ theme, want string }{
		{"dark", `<html lang="en" data-theme="dark">`},
		{"light", `<html lang="en" data-theme="light">`},
		{"", `<html lang="en">`},
		{`"><script>`, `<html lang="en">`},
	} {
		b.post("/dashboard/operators", "/dashboard/account/theme", url.Values{"theme": {tt.theme}}).
			leadsTo(t, "/dashboard/operators")
		b.get("/dashboard/operators").wantText(t, tt.want)
	}
}
