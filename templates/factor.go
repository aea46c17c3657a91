package templates

import (
	"encoding/json"
	"html/template"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/words"
)

// picture marks a PNG data URL as safe, and returns "" for any other URL.
func picture(url string) template.URL {
	if !strings.HasPrefix(url, "data:image/png;base64,") {
		return ""
	}
	return template.URL(url)
}

// A Passkey is the prompt for a passkey, which our script shows.
type Passkey struct {
	Options string // options for the browser, as JSON
	Origin  string // the origin at which passkeys work
	Error   string // may be ""
}

// passkeyWords returns the sentences of the script that prompts for a passkey, as JSON. kind is
// "create" or "get".
func passkeyWords(w *words.Words, kind, origin string) (string, error) {
	all, err := json.Marshal(map[string]string{
		"cancelled":   w.Say("passkey.cancelled-" + kind),
		"known":       w.Say("passkey.known"),
		"elsewhere":   w.Say("passkey.elsewhere", "Origin", origin),
		"unsupported": w.Say("passkey.unsupported"),
		"failed":      w.Say("passkey.failed"),
		"none":        w.Say("passkey.none"),
	})
	return string(all), err
}

// FactorSection shows, adds and removes the second factors of a subscriber or an operator.
type FactorSection struct {
	There      bool // second factors are available
	CanPasskey bool // a passkey can be added
	Passkeys   []FactorItem
	Passkey    Passkey     // to add; its Options are "" if the login is too old
	App        *FactorItem // nil if there is none
	Codes      int         // recovery codes that are left

	Stale              bool     // the login is too old to add a passkey
	Base               string   // the path that its forms' paths begin with
	Hidden             []Hidden // the hidden fields of each form
	AddPasskey, AddApp string   // pages that add a factor; "" if a form on this page does
}

// NewFactorSection returns a section with the given factors.
func NewFactorSection(all []factor.Factor) FactorSection {
	s := FactorSection{There: true}
	for _, f := range all {
		item := FactorItem{ID: f.ID, Name: f.Name, BackedUp: f.BackedUp, Created: f.Created, Used: f.Used}
		switch f.Type {
		case factor.TypePasskey:
			s.Passkeys = append(s.Passkeys, item)
		case factor.TypeTOTP:
			s.App = &item
		case factor.TypeRecovery:
			s.Codes = f.Left
		}
	}
	return s
}

// A FactorItem is a passkey or an authenticator app.
type FactorItem struct {
	ID, Name      string
	BackedUp      bool
	Created, Used time.Time
}

// A Hidden is a hidden field of a form.
type Hidden struct{ Name, Value string }

// Factor asks for a second factor.
type Factor struct {
	ID, App, Host  string
	With           string // the factor asked for: totp, passkey or recovery_codes
	TOTP, Passkeys bool   // the available factors
	Passkey        Passkey
	Error          string // may be ""
}

// Enrol sets up a required second factor.
type Enrol struct {
	ID, App, Host string
	Authenticator AppForm
	Passkey       Passkey // its Options are "" if passkeys are not available
}

// AppForm sets up an authenticator app.
type AppForm struct {
	Secret string // in groups, for typing
	QR     string // the URL of a picture
	URL    string // otpauth://…, for an app on the same device
	Error  string // may be ""
}

// NewAppForm returns an AppForm with the secret in groups of four.
func NewAppForm(secret, qr, url, fault string) AppForm {
	var groups []string
	for len(secret) > 4 {
		groups, secret = append(groups, secret[:4]), secret[4:]
	}
	return AppForm{Secret: strings.Join(append(groups, secret), " "), QR: qr, URL: url, Error: fault}
}

// RecoveryCodes shows new recovery codes, once.
type RecoveryCodes struct {
	ID, App string // the authorization request to continue; "" on the account page
	Account string // URL of the account page, if there is no request to continue
	Codes   []string
}

func (Factor) name() string        { return "factor.html" }
func (Enrol) name() string         { return "enrol.html" }
func (RecoveryCodes) name() string { return "recovery.html" }
