package web

import (
	"net/http"
	"slices"
	"time"
)

// themeCookie holds the theme that the user has chosen, light or dark. It is not a secret.
const themeCookie = "selvage-theme"

// themes lists the themes that a user can choose instead of the browser's preference.
var themes = []string{"light", "dark"}

// Theme returns the theme that the user chose in the browser that sent r: "light" or "dark". It is
// "" if the browser's preference applies.
func Theme(r *http.Request) string {
	for _, name := range []string{"__Host-" + themeCookie, themeCookie} {
		if found := r.CookiesNamed(name); len(found) == 1 && slices.Contains(themes, found[0].Value) {
			return found[0].Value
		}
	}
	return ""
}

// keepChoice is how long a browser keeps the theme or the language that a user has chosen.
const keepChoice = 365 * 24 * time.Hour

// SetTheme stores a theme in the browser for a year. An unknown theme means the browser's
// preference.
func (c Cookies) SetTheme(w http.ResponseWriter, r *http.Request, theme string) {
	if !slices.Contains(themes, theme) {
		theme = ""
	}
	c.keep(w, r, themeCookie, theme, keepChoice)
}

// languageCookie holds the language that the user has chosen. It is not a secret.
const languageCookie = "selvage-language"

// maxTag is the length of the longest tag of a language that is read (RFC 5646, section 4.4.1).
const maxTag = 35

// Language returns the tag of the language that the user chose in the browser that sent r, or "".
func Language(r *http.Request) string {
	for _, name := range []string{"__Host-" + languageCookie, languageCookie} {
		if found := r.CookiesNamed(name); len(found) == 1 && len(found[0].Value) <= maxTag {
			return found[0].Value
		}
	}
	return ""
}

// SetLanguage stores a language in the browser for a year; "" means the browser's preference.
func (c Cookies) SetLanguage(w http.ResponseWriter, r *http.Request, tag string) {
	c.keep(w, r, languageCookie, tag, keepChoice)
}

// keep sets a cookie that the browser keeps for the given time. An empty value deletes the cookie.
func (c Cookies) keep(w http.ResponseWriter, r *http.Request, name, value string, kept time.Duration) {
	ck := c.make(r, name, value)
	if value != "" {
		ck.MaxAge = int(kept.Seconds())
	}
	http.SetCookie(w, ck)
}
