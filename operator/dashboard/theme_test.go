package dashboard_test

import (
	"net/url"
	"testing"
)

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
