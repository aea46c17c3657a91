package oidc_test

import "testing"

// TestAccountTheme shows that the browser stores the theme, so that pages before a login use it
// too.
func TestAccountTheme(t *testing.T) {
	w := newWorld(t)
	b := w.newBrowser()
	page := b.account()

	for _, tt := range []struct{ theme, wantText string }{
		{theme: "dark", wantText: `<html lang="en" data-theme="dark">`},
		{theme: "light", wantText: `<html lang="en" data-theme="light">`},
		{theme: "", wantText: `<html lang="en">`},
		{theme: `"><script>`, wantText: `<html lang="en">`},
	} {
		got := b.onPage(page, "/account/display", "theme", tt.theme)
		wantText(t, "choosing the theme "+tt.theme, got, tt.wantText, "Your display settings are saved.")
		wantText(t, "another page after choosing the theme "+tt.theme, b.get("/device"), tt.wantText)
	}
}
