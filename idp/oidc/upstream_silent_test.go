package oidc_test

import (
	"net/url"
	"strings"
	"testing"
	"time"
)

// TestUpstreamSilent shows that a login is not enough for changes to the account if the provider
// may only have recognized the browser. This is true even for a very recent login.
func TestUpstreamSilent(t *testing.T) {
	fg := newForger(t)
	f := federateWith(t, fg)
	ago := func(d time.Duration) func(map[string]any) {
		return func(c map[string]any) { c["auth_time"] = time.Now().Add(-d).Unix() }
	}
	undated := func(map[string]any) {}

	for _, tt := range []struct {
		name   string
		change func(map[string]any)
		asked  []string
		recent bool
	}{
		{"signed in to the provider just now", ago(0), nil, true},
		{"five minutes ago", ago(5 * time.Minute), nil, false},
		{"yesterday", ago(24 * time.Hour), nil, false},
		{"five minutes ago, within max_age", ago(5 * time.Minute), []string{"max_age", "3600"}, false},
		{"just now, with prompt=login", ago(0), []string{"prompt", "login"}, true},
		{"no auth_time", undated, nil, false},
		{"no auth_time, within max_age", undated, []string{"max_age", "3600"}, false},
		{"no auth_time, with prompt=login", undated, []string{"prompt", "login"}, true},
	} {
		b := f.browser()
		if got := f.forgeIn(b, fg, tt.change, tt.asked...); got.param("code") == "" {
			t.Fatalf("%s: %d %v, want a code", tt.name, got.status, got.parameters())
		}

		for _, where := range []string{"", "after the session store was emptied"} {
			if where != "" {
				f.empty()
			}
			page := b.get("/account?project=" + f.project.ID)
			if !strings.Contains(page.body, `id="account-page"`) {
				t.Fatalf("%s %s: no account page: %d %s", tt.name, where, page.status, page.body)
			}
			if stale := strings.Contains(page.body, `action="/account/sign-in"`); stale == tt.recent {
				t.Errorf("%s %s: the page asks to sign in again: %v, want %v", tt.name, where, stale, !tt.recent)
			}
		}
	}
}

// TestUpstreamSilentEnrol shows that a person cannot set up a second factor if the provider may
// only have recognized the browser. The person must then sign in at the provider again. Otherwise,
// the provider would only recognize the browser again.
func TestUpstreamSilentEnrol(t *testing.T) {
	fg := newForger(t)
	f := federateWith(t, fg)
	b := f.browser()
	page := f.forgeIn(b, fg, func(map[string]any) {}, "acr_values", "2")
	if strings.Contains(page.body, "Set up a second factor") {
		t.Fatal("a silent login may set up a second factor")
	}

	sent, err := url.Parse(f.press(b, page).header.Get("Location"))
	must(t, err)
	if q := sent.Query(); q.Get("prompt") != "login" || q.Get("max_age") != "0" {
		t.Fatalf("the second request to the provider is %v, want a sign-in", q)
	}
	if page = f.answer(b, fg, sent.Query()); !strings.Contains(page.body, "Set up a second factor") {
		t.Errorf("after signing in to the provider: %d %s, want the set-up page", page.status, page.body)
	}
}
