package templates

import (
	"encoding/json"
	"html/template"
	"strings"

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
		"cancelled": w.Say("passkey.cancelled-" + kind), "known": w.Say("passkey.known"),
		"elsewhere":   w.Say("passkey.elsewhere", "Origin", origin),
		"unsupported": w.Say("passkey.unsupported"), "failed": w.Say("passkey.failed"), "none": w.Say("passkey.none"),
	})
	return string(all), err
}

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
