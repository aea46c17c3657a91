package web

import (
	"net/http"
	"slices"
	"time"
)

// themeCookie holds the theme chosen in a browser, light or dark. It is not a secret.
const themeCookie = "selvage-theme"

// themes are the themes besides the browser's own preference.
var themes = []string{"light", "dark"}

// Theme returns the theme chosen in the browser of r: "light", "dark", or "" for the
// browser's preference.
func Theme(r *http.Request) string {
	for _, name := range []string{"__Host-" + themeCookie, themeCookie} {
		if found := r.CookiesNamed(name); len(found) == 1 && slices.Contains(themes, found[0].Value) {
			return found[0].Value
		}
	}
	return ""
}

// SetTheme remembers a theme for a year; an unknown one means the browser's preference.
func (c Cookies) SetTheme(w http.ResponseWriter, r *http.Request, theme string) {
	if !slices.Contains(themes, theme) {
		theme = ""
	}
	c.keep(w, r, themeCookie, theme, 365*24*time.Hour)
}

// languageCookie holds the language chosen in a browser. It is not a secret.
const languageCookie = "selvage-language"

// Language returns the tag of the language chosen in the browser of r, or "".
func Language(r *http.Request) string {
	for _, name := range []string{"__Host-" + languageCookie, languageCookie} {
		if found := r.CookiesNamed(name); len(found) == 1 && len(found[0].Value) <= 35 {
			return found[0].Value
		}
	}
	return ""
}

// SetLanguage remembers a language for a year; "" means the browser's preference.
func (c Cookies) SetLanguage(w http.ResponseWriter, r *http.Request, tag string) {
	c.keep(w, r, languageCookie, tag, 365*24*time.Hour)
}

// keep sets a cookie in r's browser that lasts for the given time; an empty value removes it.
func (c Cookies) keep(w http.ResponseWriter, r *http.Request, name, value string, kept time.Duration) {
	ck := c.make(r, name, value)
	if value != "" {
		ck.MaxAge = int(kept.Seconds())
	}
	http.SetCookie(w, ck)
}
