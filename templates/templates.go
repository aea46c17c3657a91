// Package templates holds the pages that people see, embedded and parsed once.
// They need no JavaScript; their ids and sentences are part of the product's
// contract (docs/architecture.md, "Pages").
package templates

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"strings"

	"github.com/selvage/selvage/static"
)

//go:embed pages
var pages embed.FS

var parsed = template.Must(template.New("").Funcs(template.FuncMap{"static": static.URL}).ParseFS(pages, "pages/*.html"))

// A Page is one of the pages, with what it shows.
type Page interface {
	name() string
}

// Login asks for e-mail and password.
type Login struct {
	ID         string // of the authorization request
	App, Host  string // who asks, and where it lives
	Email      string // typed before, or hinted
	Error      string // "" at first
	EmailFocus bool   // whether the e-mail is what to type first
}

// Consent asks whether a client may have what it wants.
type Consent struct {
	ID, App, Host, Email string
	Login                string // digest of the login that is asked, to come back with the answer
	Scopes               []Scope
}

// A Scope is a right in plain words.
type Scope struct{ Title, Why string }

// Logout asks whether to sign out. Hidden fields go back with the answer.
type Logout struct {
	App    string
	Fields map[string]string
}

// LoggedOut says that the login is over.
type LoggedOut struct{ App string }

// Error says what went wrong and what to do.
type Error struct {
	Title, Text string
	Advice      string // for the developer of the app; "" for none
	RequestID   string
}

// Home is the door: what runs here.
type Home struct {
	Version string
	Links   []Link
}

// A Link leads somewhere. That of an API is shown, not followed: what it answers
// is not for browsers.
type Link struct {
	Title, URL, Text string
	API              bool
}

func (Login) name() string     { return "login.html" }
func (Consent) name() string   { return "consent.html" }
func (Logout) name() string    { return "logout.html" }
func (LoggedOut) name() string { return "loggedout.html" }
func (Error) name() string     { return "error.html" }
func (Home) name() string      { return "home.html" }

// Options are what differs in a page's headers.
type Options struct {
	Status     int      // 0 means 200
	FormAction []string // where forms may lead beside ourselves, as CSP sources
}

// Write answers with a page. It is never cached or framed, runs nothing, and
// fetches nothing from elsewhere.
func Write(w http.ResponseWriter, p Page, o Options) error {
	var body bytes.Buffer
	if err := parsed.ExecuteTemplate(&body, p.name(), p); err != nil {
		return fmt.Errorf("writing page %s: %w", p.name(), err)
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; img-src 'self' data:; base-uri 'none'; frame-ancestors 'none'; form-action "+
		strings.Join(append([]string{"'self'"}, o.FormAction...), " "))
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // with no-referrer a browser posts Origin: null
	h.Set("Cache-Control", "no-store")
	if o.Status == 0 {
		o.Status = http.StatusOK
	}
	w.WriteHeader(o.Status)
	_, _ = w.Write(body.Bytes()) // the browser may have gone
	return nil
}
