package templates

import (
	"encoding/json"
	"html/template"
	"strings"

	"github.com/selvage/selvage/internal/words"
)

// picture lets a picture of ours through that is in the page itself.
func picture(url string) template.URL {
	if !strings.HasPrefix(url, "data:image/png;base64,") {
		return ""
	}
	return template.URL(url)
}

// A Passkey is the prompt for a passkey, as a script of ours shows it.
type Passkey struct {
	Options string // JSON of what the browser is asked
	Origin  string // where passkeys work
	Error   string // "" at first
}

// passkeyWords returns the sentences of the script that asks for a passkey, as JSON. kind is
// what is asked: to "create" one or to "get" one.
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
	With           string // which: totp, passkey or recovery_codes
	TOTP, Passkeys bool   // which there are to choose from
	Passkey        Passkey
	Error          string // "" at first
}

// Enrol has a factor set up that is needed.
type Enrol struct {
	ID, App, Host string
	Authenticator AppForm
	Passkey       Passkey // its Options are "" where there can be none
}

// AppForm sets an authenticator app up.
type AppForm struct {
	Secret string // in groups, to be typed
	QR     string // the source of a picture
	URL    string // otpauth://…, for an app on the same device
	Error  string // "" at first
}

// NewAppForm makes an AppForm.
func NewAppForm(secret, qr, url, fault string) AppForm {
	var groups []string
	for len(secret) > 4 {
		groups, secret = append(groups, secret[:4]), secret[4:]
	}
	return AppForm{strings.Join(append(groups, secret), " "), qr, url, fault}
}

// RecoveryCodes shows codes, once.
type RecoveryCodes struct {
	ID, App string // of the authorization request that goes on; "" in the account
	Account string // the address of the account, else
	Codes   []string
}

func (Factor) name() string        { return "factor.html" }
func (Enrol) name() string         { return "enrol.html" }
func (RecoveryCodes) name() string { return "recovery.html" }
