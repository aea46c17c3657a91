package dashboard_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"
)

// TestNext shows that a login redirects only to pages of the dashboard.
func TestNext(t *testing.T) {
	w := newWorld(t)
	w.operator("ann@example.com", ofAll)
	for _, next := range []string{
		"https://evil.example/", "//evil.example", "/\\evil.example", "/login", "/dashboardx",
		"javascript:alert(1)", "/dashboard/\r\nX: y",
	} {
		form := url.Values{"username": {"ann@example.com"}, "password": {good}, "next": {next}}
		w.browser().post("/dashboard/login", "/dashboard/login", form).leadsTo(t, "/dashboard")
	}
}

// TestTries shows that the number of password attempts for an account is limited, and that an
// unknown account gets the same responses.
func TestTries(t *testing.T) {
	w := newWorld(t)
	w.operator("ann@example.com", ofAll)

	want := []int{422, 422, 422, 422, 429, 429}
	for _, email := range []string{"ann@example.com", "nobody@example.com"} {
		b := w.browser()
		form := url.Values{"username": {strings.ToUpper(email)}, "password": {"wrong"}}
		var got []int
		for range want {
			got = append(got, b.post("/dashboard/login", "/dashboard/login", form).StatusCode)
		}
		if !slices.Equal(got, want) {
			t.Errorf("attempts as %s: %v, want %v", email, got, want)
		}
	}
}
