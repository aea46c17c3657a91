// Package templates holds the embedded pages. They are parsed when a page is first shown. Except
// for [Demo], [Join] and [CheckSession], they work without JavaScript. Their ids and sentences are
// part of the product's contract (docs/architecture.md, "Pages").
package templates

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"net/http"
	"sync"

	template "github.com/DataDog/datadog-agent/pkg/template/html"

	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/static"
)

//go:embed pages
var pages embed.FS

// parsed holds the templates for each language. They are parsed at first use, because most commands
// show no pages.
var parsed = sync.OnceValue(func() map[*words.Words]func() *template.Template { return eachLanguage(parse) })

// eachLanguage returns a function for each language. Each function parses the templates of its
// language when it is first called.
func eachLanguage(parse func(*words.Words) *template.Template) map[*words.Words]func() *template.Template {
	sets := make(map[*words.Words]func() *template.Template)
	for _, w := range words.All() {
		sets[w] = sync.OnceValue(func() *template.Template { return parse(w) })
	}
	return sets
}

func parse(w *words.Words) *template.Template {
	return parseIn(template.New("").Funcs(template.FuncMap{
		"static":       static.URL,
		"picture":      picture,
		"plates":       Brand.plates,
		"say":          w.Say,
		"rich":         w.HTML,
		"date":         w.Date,
		"tr":           w.Text,
		"lang":         func() string { return w.Tag },
		"passkeywords": func(kind, origin string) (string, error) { return passkeyWords(w, kind, origin) },
		"languages":    words.All,
		"scriptwords":  func() (string, error) { return scriptWords(w) },
	}), w, "pages/*.html", "pages/shared/*.html")
}

// A Page is one of the embedded pages, with the data that it shows.
type Page interface {
	name() string
}

// Login asks for email and password.
type Login struct {
	ID         string // id of the authorization request
	App, Host  string // the app's name and host
	Email      string // as typed before, or from login_hint
	Error      string // may be ""
	Again      bool   // the request was started again because the previous one had expired
	EmailFocus bool   // the email is focused first
	Register   bool   // people may create their own account

	Passkey      Passkey // its Options are "" if passkeys are not available
	PasskeyError string

	Link      string // the provider to link with the account after the login, or ""
	Upstreams []Upstream
}

// An Upstream is another provider to sign in with.
type Upstream struct{ ID, Name string }

// LinkAccount asks whether to link an account with one at another provider.
type LinkAccount struct {
	ID       string // id of the authorization request
	Provider string
	Email    string
}

// Accounts asks which of the signed-in accounts to continue with.
type Accounts struct {
	ID, App, Host string
	Accounts      []Account
}

// An Account is one of the logins to choose from.
type Account struct {
	Login       string // digest of the login, sent back with the form
	Name, Email string
}

// Consent asks whether to grant a client what it requests.
type Consent struct {
	ID, App, Host, Email string
	Login                string // digest of the login, sent back with the form
	Scopes               []Scope
}

// A Scope is a permission in plain words.
type Scope struct{ Title, Why string }

// Return makes the browser post the result to the app that requested it.
type Return struct {
	App, Host string
	URL       string // the target
	Fields    map[string]string
}

// Device asks for the code that a device shows.
type Device struct {
	Token string // sent back with the form
	Code  string // as typed before, or from the link
	Error string // may be ""
}

// DeviceConsent asks whether to sign in a device.
type DeviceConsent struct {
	Consent
	UserCode string // the code that the device shows
}

// DeviceDone shows whether the device was signed in.
type DeviceDone struct {
	App    string
	Denied bool
}

// Logout asks whether to sign out.
type Logout struct {
	Token  string // sent back with the form, as are Fields
	App    string
	Fields map[string]string
	Cancel string // URL of the page to return to
}

// LoggedOut tells people that they are signed out.
type LoggedOut struct {
	App   string
	Again string // URL at which to sign in again; may be ""

	Frames   []string     // front-channel logout URIs to load
	Continue template.URL // the registered URI to go to after that; may be ""
}

// CheckSession tells apps that frame it whether the browser's logins have changed (OpenID Connect
// Session Management 1.0, section 3.2).
type CheckSession struct{}

// Error explains what went wrong and what to do.
type Error struct {
	Title, Text string
	Advice      string // for the app's developer; may be ""
	Cause       string // the exact error, on the developer's own machine; otherwise ""
	RequestID   string
	Continue    *Link // where to go from the error page; may be nil
}

// Home is the start page. It leads visitors to the pages of this server, and lists its endpoints for
// developers.
type Home struct {
	Version   string // "" hides it
	Pages     []Link
	Endpoints []Link
}

// Demo is a demo app in seven steps, and the server that it uses.
type Demo struct {
	SDK                        string // the script's path
	Server, Issuer, FabricHost string
	Client                     string // the client's id
	Email                      string // email of the demo subscriber
	LoopbackMedia              bool   // calls use loopback for media; Firefox sends no media to it
	StockSDK, StockIntegrity   string // URL and digest of @signalwire/js
	StockHost                  string // host that serves it; "" means this server
}

// Join lets guests with a link join a room from a browser.
type Join struct{}

// A Link leads to a page. An API's link is shown only as text, because browsers cannot display its
// responses.
type Link struct {
	Title, URL, Text string
	API              bool
}

func (Login) name() string         { return "login.html" }
func (LinkAccount) name() string   { return "linkaccount.html" }
func (Accounts) name() string      { return "accounts.html" }
func (Consent) name() string       { return "consent.html" }
func (Return) name() string        { return "return.html" }
func (Device) name() string        { return "device.html" }
func (DeviceConsent) name() string { return "deviceconsent.html" }
func (DeviceDone) name() string    { return "devicedone.html" }
func (Logout) name() string        { return "logout.html" }
func (CheckSession) name() string  { return "checksession.html" }
func (LoggedOut) name() string     { return "loggedout.html" }
func (Error) name() string         { return "error.html" }
func (Home) name() string          { return "home.html" }
func (Demo) name() string          { return "demo.html" }
func (Join) name() string          { return "join.html" }

// Options are a page's status, headers and view.
type Options struct {
	Status     int      // 0 means 200
	FormAction []string // other origins that forms may lead to, as CSP sources
	Inert      bool     // forms are disabled: the page is only a sample
	Scripts    bool     // it runs our scripts
	// ScriptHosts are other origins whose scripts it runs, as CSP sources.
	ScriptHosts []string
	Media       bool     // it plays media from this server
	Connect     []string // other origins that its scripts may connect to, as CSP sources; if empty, none
	Frames      []string // origins that it may frame, as CSP sources
	Framer      string   // the origin that may frame it; may be ""
	// Isolated prevents the page's opener from reaching the page (COOP). Login pages are not
	// isolated, because apps open them in windows that the apps must reach.
	Isolated bool
	Referrer string // its Referrer-Policy; "" means same-origin
	View     View   // how it is shown
}

// Render returns a page as a document, for a frame within another page.
func Render(p Page, v View) (string, error) {
	var body bytes.Buffer
	err := render(&body, p, v)
	return body.String(), err
}

// Write writes a page. The page is never cached, can be framed only by o.Framer, runs scripts only
// if o.Scripts is set, and loads nothing from other origins except what o names.
func Write(w http.ResponseWriter, p Page, o Options) error {
	var body bytes.Buffer
	if err := render(&body, p, o.View); err != nil {
		return fmt.Errorf("writing page %s: %w", p.name(), err)
	}

	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	setPolicy(h, o)

	w.WriteHeader(cmp.Or(o.Status, http.StatusOK))
	_, _ = w.Write(body.Bytes()) // an error means that the browser has disconnected
	return nil
}
