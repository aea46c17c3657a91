package oidc_test

import (
	"strings"
	"testing"
)

// TestAccountTheme shows that the browser stores the theme, so that pages before a login use it
// too.
func TestAccountTheme(t *testing.T) {
	w := newWorld(t)
	b := w.browser()
	page := b.account()

	for _, tt := range []struct{ theme, want string }{
		{"dark", `<html lang="en" data-theme="dark">`}, {"light", `<html lang="en" data-theme="light">`},
		{"", `<html lang="en">`}, {`"><script>`, `<html lang="en">`},
	} {
		got := b.onPage(page, "/account/display", "theme", tt.theme)
		if !strings.Contains(got.body, tt.want) ||
			!strings.Contains(got.body, "Your display settings are saved.") {
			t.Errorf("the theme %q: %d, want %s and a notice in the page", tt.theme, got.status, tt.want)
		}
		if got := b.get("/device"); !strings.Contains(got.body, tt.want) {
			t.Errorf("after choosing the theme %q, another page lacks %s", tt.theme, tt.want)
		}
	}
}
