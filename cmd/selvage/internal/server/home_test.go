package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
)

// TestHomeLanguage shows that the start page has the browser's language, and a menu to change it.
func TestHomeLanguage(t *testing.T) {
	c := config.Config{
		Listen:    "127.0.0.1:0",
		ListenTLS: config.Off,
		Services:  config.Services(config.AllServices),
	}
	a := &App{Config: c, Where: config.Locate(c, "1", "2")}
	for accepted, wants := range map[string][]string{
		"en": {`<html lang="en">`, "Welcome", "Dashboard", `lang="de" type="submit">Deutsch`},
		"de": {`<html lang="de">`, "Willkommen", "Verwaltung", `lang="en" type="submit">English`},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Accept-Language", accepted)
		rec := httptest.NewRecorder()
		a.home(rec, r)
		for _, want := range wants {
			if !strings.Contains(rec.Body.String(), want) {
				t.Errorf("with %s, the page lacks %q", accepted, want)
			}
		}
	}
}
