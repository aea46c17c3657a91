package templates_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/selvage/selvage/static"
	"github.com/selvage/selvage/templates"
)

const hostile = `"><script>alert(1)</script>{{7*7}}`

// pages returns examples of pages, by name.
func pages() map[string]templates.Page {
	return map[string]templates.Page{
		"login": templates.Login{ID: "abc", App: "Acme Dialer", Host: "dialer.acme.example", EmailFocus: true},
		"login-wrong": templates.Login{
			ID:    "abc",
			App:   "Acme Dialer",
			Host:  "dialer.acme.example",
			Email: "ada@acme.example",
			Error: "Email or password is wrong.",
		},
		"consent": templates.Consent{
			ID:    "abc",
			App:   "Acme Dialer",
			Host:  "dialer.acme.example",
			Email: "ada@acme.example",
			Scopes: []templates.Scope{
				{Title: "Know who you are", Why: "An identifier that never changes."},
				{Title: "See your email address"},
				{Title: "Stay signed in", Why: "Even while you are not using it, until you sign out."},
			},
		},
		"accounts": templates.Accounts{
			ID:   "abc",
			App:  "Acme Dialer",
			Host: "dialer.acme.example",
			Accounts: []templates.Account{
				{Login: "1", Name: "Ada Lovelace", Email: "ada@acme.example"},
				{Login: "2", Email: "grace.hopper.of.the.navy@a-rather-long-host-name.acme.example"},
			},
		},

		"device": templates.Device{Token: "t"},
		"device-wrong": templates.Device{
			Code:  "WDJB-MJHT",
			Error: "No device is showing this code. Check it, or get a new code on the device.",
		},
		"device-consent": templates.DeviceConsent{
			UserCode: "WDJB-MJHT",
			Consent: templates.Consent{
				ID:    "abc",
				App:   "Acme TV",
				Email: "ada@acme.example",
				Scopes: []templates.Scope{
					{Title: "Know who you are", Why: "An identifier that never changes."},
					{Title: "Stay signed in", Why: "Even while you are not using it, until you sign out."},
				},
			},
		},
		"device-done":   templates.DeviceDone{App: "Acme TV"},
		"device-denied": templates.DeviceDone{App: "Acme TV", Denied: true},

		"return": templates.Return{
			App:    "Acme Dialer",
			Host:   "dialer.acme.example",
			URL:    "https://dialer.acme.example/cb",
			Fields: map[string]string{"code": "abc", "state": "s"},
		},
		"logout": templates.Logout{
			App:    "Acme Dialer",
			Fields: map[string]string{"client_id": "1", "state": "s"},
		},
		"loggedout": templates.LoggedOut{App: "Acme Dialer"},
		"unsent": templates.Unsent{
			Title:  "Send the form now?",
			Text:   "Nothing was saved yet.",
			Action: "/account/profile",
			Fields: []templates.Hidden{{Name: "first_name", Value: "Ada"}},
			Button: "Send the form",
		},
		"error": templates.Error{
			Title: "The app cannot sign you in here",
			Text:  "The app is unknown, or its redirect address is not registered.",
			Advice: "If you are the developer of this app: send client_id and redirect_uri exactly once each. " +
				"redirect_uri must match one of the client's registered addresses, character for character.",
			RequestID: "7KQX2MZJ4W",
		},
		"home": templates.Home{
			Version: "0.1.0",
			Endpoints: []templates.Link{{
				Title: "Issuer",
				URL:   "http://localhost:8080/.well-known/openid-configuration",
				Text:  "the discovery document",
			}},
		},
	}
}

// TestPages renders the example pages, and checks their content and headers. If SELVAGE_PAGES names
// a directory, it writes the pages there for inspection.
func TestPages(t *testing.T) {
	parts := map[string][]string{ // what each page must contain
		"login":        {`id="username"`, `id="password"`, `id="login-submit"`, "Sign in"},
		"consent":      {`id="consent-allow"`, `id="consent-deny"`},
		"accounts":     {`id="account-0"`, `id="account-1"`, `id="account-other"`, "Choose an account"},
		"device":       {`id="user-code"`, `id="device-submit"`},
		"device-wrong": {`id="device-error"`, `value="WDJB-MJHT"`},
		"device-consent": {
			`id="device-code"`, "WDJB-MJHT", `id="device-warning"`, "ada@acme.example",
			`id="consent-allow"`, `id="consent-deny"`, `action="/consent"`, `href="/accounts?id=abc"`,
		},
		"device-done":   {`id="device-done"`, "The device is signed in"},
		"device-denied": {`id="device-denied"`, "The device was not signed in"},
		"return":        {`id="return-submit"`, `action="https://dialer.acme.example/cb"`, `name="code" value="abc"`},
		"logout":        {`id="logout-confirm"`},
		"loggedout":     {`id="logged-out"`, "You are signed out"},
		"unsent":        {`id="unsent-submit"`, `name="first_name" value="Ada"`},
		"error":         {`id="error-page"`, "redirect address is not registered"},
	}

	for name, page := range pages() {
		t.Run(name, func(t *testing.T) {
			rec := httptest.NewRecorder()
			if err := templates.Write(rec, page, templates.Options{FormAction: []string{"https:"}}); err != nil {
				t.Fatal(err)
			}
			body := rec.Body.String()
			for _, want := range parts[name] {
				if !strings.Contains(body, want) {
					t.Errorf("the page lacks %s", want)
				}
			}
			wantHeader(t, rec.Header())

			body = strings.Replace(body, `<script src="`+static.URL("return.js")+`"></script>`, "", 1)
			body = strings.Replace(body, `<script src="`+static.URL("recovery.js")+`" defer></script>`, "", 1)
			for _, inline := range []string{"<script", "style="} {
				if strings.Contains(body, inline) {
					t.Errorf("the page has an inline script or style: %s", inline)
				}
			}
			write(t, name, body)
		})
	}
}

// wantHeader fails the test unless the header of a page protects it. The page may have forms to
// https:.
func wantHeader(t *testing.T, header http.Header) {
	t.Helper()
	for name, want := range map[string]string{
		"X-Frame-Options":        "DENY",
		"Cache-Control":          "no-store",
		"Referrer-Policy":        "same-origin",
		"X-Content-Type-Options": "nosniff",
	} {
		if got := header.Get(name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}

	policy := header.Get("Content-Security-Policy")
	if strings.Contains(policy, "unsafe") {
		t.Errorf("Content-Security-Policy = %q, want nothing unsafe", policy)
	}
	for _, directive := range []string{"frame-ancestors 'none'", "form-action 'self' https:"} {
		if !strings.Contains(policy, directive) {
			t.Errorf("Content-Security-Policy = %q, want %s", policy, directive)
		}
	}
}

// write writes a page for inspection, as TestPages describes.
func write(t *testing.T, name, body string) {
	t.Helper()
	dir := os.Getenv("SELVAGE_PAGES")
	if dir == "" {
		return
	}
	rec := httptest.NewRecorder()
	static.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, static.URL("pages.css"), nil))
	body = strings.Replace(body, `href="`+static.URL("pages.css")+`"`, `href="pages.css"`, 1)
	for file, text := range map[string]string{name + ".html": body, "pages.css": rec.Body.String()} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPagesEscape(t *testing.T) {
	for _, page := range []templates.Page{
		templates.Login{ID: hostile, App: hostile, Host: hostile, Email: hostile, Error: hostile},
		templates.Consent{
			ID:     hostile,
			Login:  hostile,
			App:    hostile,
			Host:   hostile,
			Email:  hostile,
			Scopes: []templates.Scope{{Title: hostile, Why: hostile}},
		},
		templates.Accounts{
			ID:       hostile,
			App:      hostile,
			Host:     hostile,
			Accounts: []templates.Account{{Login: hostile, Name: hostile, Email: hostile}},
		},
		templates.Return{
			App:    hostile,
			Host:   hostile,
			URL:    "javascript:alert(1)",
			Fields: map[string]string{hostile: hostile},
		},
		templates.Logout{Token: hostile, App: hostile, Fields: map[string]string{hostile: hostile}},
		templates.LoggedOut{App: hostile},
		templates.Unsent{
			Title:  hostile,
			Text:   hostile,
			Action: "javascript:alert(1)",
			Fields: []templates.Hidden{{Name: hostile, Value: hostile}},
			Button: hostile,
		},
		templates.Error{Title: hostile, Text: hostile, Advice: hostile, RequestID: hostile},
		templates.Home{
			Version:   hostile,
			Pages:     []templates.Link{{Title: hostile, URL: "javascript:alert(1)", Text: hostile}},
			Endpoints: []templates.Link{{Title: hostile, URL: "javascript:alert(1)", Text: hostile}},
		},
	} {
		rec := httptest.NewRecorder()
		if err := templates.Write(rec, page, templates.Options{}); err != nil {
			t.Fatal(err)
		}

		body := strings.Replace(rec.Body.String(), `<script src="`+static.URL("return.js")+`"></script>`, "", 1)
		for _, html := range []string{"<script", `"javascript:`, `="">`} {
			if strings.Contains(body, html) {
				t.Errorf("%T lets %s through:\n%s", page, html, body)
			}
		}
	}
}

func TestStatic(t *testing.T) {
	tests := []struct {
		method, path string
		want         int
	}{
		{http.MethodGet, static.URL("pages.css"), http.StatusOK},
		{http.MethodHead, static.URL("pages.css"), http.StatusOK},
		{http.MethodPost, static.URL("pages.css"), http.StatusNotFound},
		{http.MethodGet, "/static/pages.css", http.StatusNotFound},
		{http.MethodGet, "/static/../static.go", http.StatusNotFound},
	}

	for _, tt := range tests {
		rec := httptest.NewRecorder()
		static.Handler().ServeHTTP(rec, httptest.NewRequest(tt.method, tt.path, nil))
		if rec.Code != tt.want {
			t.Errorf("%s %s = %d, want %d", tt.method, tt.path, rec.Code, tt.want)
		}
	}
}

// inEnglish are the pages for developers only, which contain their English text.
var inEnglish = []string{"demo.html", "docs.html"}

// TestNoLiteralText shows that all text on the other pages, except those of the dashboard, comes
// from messages, so that it exists in every language.
func TestNoLiteralText(t *testing.T) {
	action := regexp.MustCompile(`(?s)\{\{.*?\}\}`)
	tag := regexp.MustCompile(`(?s)<[^>]*>`)
	word := regexp.MustCompile(`[A-Za-z]{2,}`)
	spoken := regexp.MustCompile(`(?:aria-label|placeholder|alt|title)="[^"]*[A-Za-z]`)
	files, err := filepath.Glob("pages/*.html")
	if err != nil || len(files) < 25 {
		t.Fatalf("%d pages, %v, want at least 25", len(files), err)
	}

	for _, path := range files {
		if slices.Contains(inEnglish, filepath.Base(path)) {
			continue
		}

		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := action.ReplaceAllString(string(raw), "")
		for _, found := range spoken.FindAllString(text, -1) {
			t.Errorf("%s has the literal %s", path, found)
		}

		for _, found := range word.FindAllString(tag.ReplaceAllString(text, ""), -1) {
			if found != "selvage" {
				t.Errorf("%s has the literal %q", path, found)
			}
		}
	}
}
