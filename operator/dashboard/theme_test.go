package dashboard_test

import (
	"net/url"
	"strings"
	"testing"
)

// TestTheme shows that the browser remembers the theme, and that choosing a theme leads back to the
// same page, without a script.
func TestTheme(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	for _, tt := range []struct{ theme, want string }{
		{"dark", `<html lang="en" data-theme="dark">`}, {"light", `<html lang="en" data-theme="light">`},
		{"", `<html lang="en">`}, {`"><script>`, `<html lang="en">`},
	} {
		b.post("/dashboard/operators", "/dashboard/account/theme", url.Values{"theme": {tt.theme}}).leadsTo(
			t, "/dashboard/operators")
		if got := b.get("/dashboard/operators").body; !strings.Contains(got, tt.want) {
			t.Errorf("with the theme %q, the page lacks %s", tt.theme, tt.want)
		}
	}
}
