package dashboard

import (
	"crypto/rand"

	"github.com/selvage/selvage/internal/factor"
)

// A passkeyForm is a form in which the browser uses or creates a passkey. A script fills it in. The
// zero value shows no form.
type passkeyForm struct {
	Action, Next, Form string
	Prompt             string // identifies the page, since each page in a browser has its own challenge
	Makes              bool   // whether the form creates a passkey instead of using one
	Waits              bool   // whether the email field also offers passkeys
	Options            string // JSON for the browser's WebAuthn call
	Origin             string
	Button             string
	Error              string
}

// passkeys reports whether operators can use passkeys.
func (a *factorPages) passkeys() bool { return a.Factors != nil && a.Factors.Passkeys() }

// flow identifies where a passkey's challenge may be answered. This is a page shown in this
// session, or in this browser if there is no session.
func (a *factorPages) flow(v *visit, prompt string) string {
	return "dashboard " + a.formMark(v) + " " + prompt
}

// prompt begins a new prompt in a form.
func (a *factorPages) prompt(v *visit, f *passkeyForm) {
	f.Prompt = rand.Text()
	f.Form = a.formToken(v)
	f.Origin = a.origin
}

// askPasskey completes a form that uses a passkey of o, or of any operator if o is nil.
func (a *factorPages) askPasskey(v *visit, f passkeyForm, o *factor.Owner) (passkeyForm, error) {
	a.prompt(v, &f)
	options, err := a.Factors.BeginLogin(v.r.Context(), a.flow(v, f.Prompt), o)
	if err != nil {
		return passkeyForm{}, err
	}
	f.Options = string(options)
	return f, nil
}

// usePasskey verifies the passkey in a form and returns it. If the passkey is rejected, the returned value
// contains only its owner, if known.
func (a *factorPages) usePasskey(v *visit) (factor.Passkey, error) {
	if !a.passkeys() {
		return factor.Passkey{}, factor.ErrNone
	}
	flow, credential := a.flow(v, v.form.Get("prompt")), []byte(v.form.Get("credential"))
	key, err := a.Factors.CheckPasskey(v.r.Context(), flow, credential)
	if err != nil {
		return key, err
	}
	if key.Owner.Kind != factor.Operator {
		return key, factor.ErrUnknown
	}
	return key, nil
}

// makePasskey completes a form that creates a passkey for the operator.
func (a *factorPages) makePasskey(v *visit, f passkeyForm) (passkeyForm, error) {
	a.prompt(v, &f)
	options, err := a.Factors.BeginPasskey(v.r.Context(), ownerOf(v.account), a.flow(v, f.Prompt),
		v.account.Email, v.account.Title())
	if err != nil {
		return passkeyForm{}, err
	}
	f.Makes = true
	f.Options = string(options)
	return f, nil
}

// createPasskey creates the passkey in a form, and records in the session that two factors were
// used.
func (a *factorPages) createPasskey(v *visit) error {
	if !a.passkeys() {
		return factor.ErrNone
	}
	flow, credential := a.flow(v, v.form.Get("prompt")), []byte(v.form.Get("credential"))
	key, err := a.Factors.CreatePasskey(v.r.Context(), ownerOf(v.account), !v.session.TwoFactors(),
		flow, v.form.Get("name"), credential)
	if err != nil {
		return err
	}
	return a.raise(v, key.AMR()...)
}
