package web

import (
	"net/http"
	"slices"
	"time"
)

// themeCookie keeps whether a browser is shown light or dark pages. It is no secret.
const themeCookie = "selvage-theme"

// themes are those that there are beside what the browser prefers.
var themes = []string{"light", "dark"}

// Theme returns the theme that somebody chose in the browser of r: "light", "dark", or ""
// for what the browser prefers.
func Theme(r *http.Request) string {
	for _, name := range []string{"__Host-" + themeCookie, themeCookie} {
		if found := r.CookiesNamed(name); len(found) == 1 && slices.Contains(themes, found[0].Value) {
			return found[0].Value
		}
	}
	return ""
}

// SetTheme keeps a theme, for a year; one that there is not is what the browser prefers.
func (c Cookies) SetTheme(w http.ResponseWriter, r *http.Request, theme string) {
	if !slices.Contains(themes, theme) {
		theme = ""
	}
	c.keep(w, r, themeCookie, theme, 365*24*time.Hour)
}

// languageCookie keeps the language that somebody chose. It is no secret.
const languageCookie = "selvage-language"

// Language returns the tag of the language that somebody chose in the browser of r, or "".
func Language(r *http.Request) string {
	for _, name := range []string{"__Host-" + languageCookie, languageCookie} {
		if found := r.CookiesNamed(name); len(found) == 1 && len(found[0].Value) <= 35 {
			return found[0].Value
		}
	}
	return ""
}

// SetLanguage keeps a language, for a year; "" is what the browser prefers.
func (c Cookies) SetLanguage(w http.ResponseWriter, r *http.Request, tag string) {
	c.keep(w, r, languageCookie, tag, 365*24*time.Hour)
}

// keep returns r's browser a cookie that outlives it; an empty value removes it.
func (c Cookies) keep(w http.ResponseWriter, r *http.Request, name, value string, kept time.Duration) {
	ck := c.make(r, name, value)
	if value != "" {
		ck.MaxAge = int(kept.Seconds())
	}
	http.SetCookie(w, ck)
}
