// Package templates holds the pages that people see, embedded, and parsed when one is shown first.
// They need no JavaScript; their ids and sentences are part of the product's
// contract (docs/architecture.md, "Pages").
package templates

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"sync"

	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/static"
)

//go:embed pages
var pages embed.FS

// parsed are the pages in each language. A command, and a start, shows none.
var parsed = sync.OnceValue(func() map[*words.Words]func() *template.Template {
	sets := make(map[*words.Words]func() *template.Template)
	for _, w := range words.All() {
		sets[w] = sync.OnceValue(func() *template.Template { return parse(w) })
	}
	return sets
})

func parse(w *words.Words) *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"static": static.URL, "picture": picture, "say": w.Say, "rich": w.HTML, "date": w.Date,
		"lang":         func() string { return w.Tag },
		"passkeywords": func(kind, origin string) (string, error) { return passkeyWords(w, kind, origin) },
		"languages":    words.All,
	}).ParseFS(pages, "pages/*.html"))
}

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
	Again      bool   // the request was begun anew, since the one before was over
	EmailFocus bool   // whether the e-mail is what to type first
	Register   bool   // whether people may make themselves an account

	Passkey      Passkey // its Options are "" where there can be none
	PasskeyError string
}

// Accounts asks as which of those who are signed in to go on.
type Accounts struct {
	ID, App, Host string
	Accounts      []Account
}

// An Account is a login that may be chosen.
type Account struct {
	Login       string // its digest, to come back with the answer
	Name, Email string
}

// Consent asks whether a client may have what it wants.
type Consent struct {
	ID, App, Host, Email string
	Login                string // digest of the login that is asked, to come back with the answer
	Scopes               []Scope
}

// A Scope is a right in plain words.
type Scope struct{ Title, Why string }

// Return has the browser post an answer to the app that waits for it.
type Return struct {
	App, Host string
	URL       string // where to
	Fields    map[string]string
}

// Device asks for the code that a device shows.
type Device struct {
	Token string // that goes back with the answer
	Code  string // typed before, or in the link that was followed
	Error string // "" at first
}

// DeviceConsent asks whether a device may be signed in.
type DeviceConsent struct {
	Consent
	UserCode string // that the device shows
}

// DeviceDone says what became of the device.
type DeviceDone struct {
	App    string
	Denied bool
}

// Logout asks whether to sign out. Hidden fields go back with the answer.
type Logout struct {
	Token  string // one of them
	App    string
	Fields map[string]string
}

// LoggedOut says that the login is over.
type LoggedOut struct {
	App   string
	Again string // where to sign in again; "" for nowhere
}

// Error says what went wrong and what to do.
type Error struct {
	Title, Text string
	Advice      string // for the developer of the app; "" for none
	Cause       string // what exactly is wrong, where this is the developer's own machine; "" elsewhere
	RequestID   string
	Way         *Link // where to go on; nil for nowhere
}

// Home is the door: what runs here.
type Home struct {
	Version string
	Links   []Link
}

// Demo is an app in seven steps, and where the server is that it uses.
type Demo struct {
	SDK                        string // the script's path
	Server, Issuer, FabricHost string
	Client                     string // its id
	Email                      string // who can sign in
}

// A Link leads somewhere. That of an API is shown, not followed: what it answers
// is not for browsers.
type Link struct {
	Title, URL, Text string
	API              bool
}

func (Login) name() string         { return "login.html" }
func (Accounts) name() string      { return "accounts.html" }
func (Consent) name() string       { return "consent.html" }
func (Return) name() string        { return "return.html" }
func (Device) name() string        { return "device.html" }
func (DeviceConsent) name() string { return "deviceconsent.html" }
func (DeviceDone) name() string    { return "devicedone.html" }
func (Logout) name() string        { return "logout.html" }
func (LoggedOut) name() string     { return "loggedout.html" }
func (Error) name() string         { return "error.html" }
func (Home) name() string          { return "home.html" }
func (Demo) name() string          { return "demo.html" }

// Options are what differs in a page's headers.
type Options struct {
	Status     int      // 0 means 200
	FormAction []string // where forms may lead beside ourselves, as CSP sources
	Inert      bool     // its forms lead nowhere: it is shown to be looked at
	Scripts    bool     // it has scripts of ours
	Media      bool     // it plays what we serve
	Connect    []string // what its scripts may ask beside ourselves, as CSP sources; none may ask nothing
	Frames     []string // what it may frame, as CSP sources
	Framer     string   // the one origin that may frame it; "" for none
	Isolated   bool     // whoever opened it cannot reach it (COOP); apps open login pages in windows that they must
	Referrer   string   // its Referrer-Policy; "" means same-origin
	View       View     // how it is shown
}

// Write answers with a page. It is never cached, framed by none but who is named,
// runs nothing but scripts of ours where it has some, and fetches nothing from
// elsewhere.
func Write(w http.ResponseWriter, p Page, o Options) error {
	var body bytes.Buffer
	if err := render(&body, p, o.View); err != nil {
		return fmt.Errorf("writing page %s: %w", p.name(), err)
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	scripts, framers := "", o.Framer
	if o.Scripts {
		scripts = "script-src 'self'; "
	}
	if o.Media {
		scripts += "media-src 'self'; "
	}
	if len(o.Connect) > 0 {
		scripts += "connect-src 'self' " + strings.Join(o.Connect, " ") + "; "
	}
	if len(o.Frames) > 0 {
		scripts += "frame-src " + strings.Join(o.Frames, " ") + "; "
	}
	if framers == "" {
		framers = "'none'"
		h.Set("X-Frame-Options", "DENY") // which cannot name an origin
	}
	forms := strings.Join(append([]string{"'self'"}, o.FormAction...), " ")
	if o.Inert {
		forms = "'none'"
	}
	h.Set("Content-Security-Policy", "default-src 'none'; "+
		scripts+"style-src 'self'; img-src 'self' data:; base-uri 'none'; frame-ancestors "+
		framers+"; form-action "+forms)
	h.Set("X-Content-Type-Options", "nosniff")
	if o.Isolated {
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
	}
	h.Set("Referrer-Policy", cmp.Or(o.Referrer, "same-origin")) // with no-referrer a browser posts Origin: null
	h.Set("Cache-Control", "no-store")
	if o.Status == 0 {
		o.Status = http.StatusOK
	}
	w.WriteHeader(o.Status)
	_, _ = w.Write(body.Bytes()) // the browser may have gone
	return nil
}
