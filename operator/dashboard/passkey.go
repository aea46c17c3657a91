package dashboard

import (
	"crypto/rand"
	"errors"
	"net/http"

	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
)

// A passkeyForm has the browser use a passkey or make one; its script fills it in. The zero
// value is none: where there can be no passkeys, or the operator has none.
type passkeyForm struct {
	Action, Next, Form string
	Prompt             string // which of the browser's pages it is on: each has a challenge of its own
	Makes              bool   // it makes a passkey
	Waits              bool   // one is offered where the e-mail is typed, too
	Options            string // JSON of what the browser is asked
	Origin             string
	Button             string
	Error              string
}

// passkeys reports whether operators can have passkeys.
func (a *factorPages) passkeys() bool { return a.Factors != nil && a.Factors.Passkeys() }

// flow names what a passkey's challenge is for: a page that was shown to this session, or
// to this browser where there is none yet.
func (a *factorPages) flow(v *visit, prompt string) string {
	return "dashboard " + a.formToken(v) + " " + prompt
}

// askPasskey puts a prompt for a passkey on a page: for one of the owner, or for anybody's.
func (a *factorPages) askPasskey(v *visit, f passkeyForm, o *factor.Owner) (passkeyForm, error) {
	f.Prompt, f.Form, f.Origin = rand.Text(), a.formToken(v), a.origin
	options, err := a.Factors.BeginLogin(v.r.Context(), a.flow(v, f.Prompt), o)
	f.Options = string(options)
	return f, err
}

// usePasskey returns the passkey that a form brings.
func (a *factorPages) usePasskey(v *visit) (factor.Passkey, error) {
	if !a.passkeys() {
		return factor.Passkey{}, factor.ErrNone
	}
	key, err := a.Factors.CheckPasskey(v.r.Context(), a.flow(v, v.form.Get("prompt")),
		[]byte(v.form.Get("credential")))
	if err == nil && key.Owner.Kind != factor.Operator {
		err = factor.ErrUnknown
	}
	return key, err
}

// offerPasskey is the prompt of the page where an operator signs in. Whoever has had too
// many gets the page without one.
func (a *loginPages) offerPasskey(v *visit, next, wrong string) (passkeyForm, error) {
	if !a.factors.passkeys() {
		return passkeyForm{}, nil
	}
	if err := a.Operators.AdmitPrompt(v.r.Context(), visitor(v.r)); errors.Is(err, problem.RateLimited) {
		return passkeyForm{}, nil
	} else if err != nil {
		return passkeyForm{}, err
	}
	return a.factors.askPasskey(v, passkeyForm{Action: Prefix + "/login/passkey", Next: next, Waits: true,
		Button: "Use a passkey", Error: wrong}, nil)
}

// logInByPasskey serves POST /dashboard/login/passkey: the device has verified who uses it,
// which is both factors.
func (a *loginPages) logInByPasskey(v *visit) error {
	next := ownPath(v.form.Get("next"))
	from := visitor(v.r)
	err := a.Operators.CountPasskey(v.r.Context(), from)
	var key factor.Passkey
	if err == nil {
		key, err = a.factors.usePasskey(v)
	}
	if err == nil {
		var cookie string
		_, cookie, err = a.Operators.SignInByPasskey(v.r.Context(), key.Owner.ID, key.AMR(), from)
		if err == nil {
			a.cookies.Set(v.w, v.r, sessionCookie, cookie)
			return v.redirect(orFront(next))
		}
		if errors.Is(err, problem.Unauthenticated) {
			err = factor.ErrUnknown
		}
	}
	p := problem.First(err)
	if p == nil || p.Kind != problem.Invalid && p.Kind != problem.RateLimited {
		return err
	}
	status := http.StatusTooManyRequests
	if p.Kind == problem.Invalid {
		status = http.StatusUnprocessableEntity
		if err := a.refusePasskey(v, key, err); err != nil {
			return err
		}
	}
	web.RetryAfter(v.w, p)
	return a.loginPage(v, status, loginPage{Next: next}, p.Message)
}

// refusePasskey writes down that a passkey was not taken, and whose it is where that is known.
func (a *loginPages) refusePasskey(v *visit, key factor.Passkey, why error) error {
	o := v.account
	if o.ID == "" && key.Owner.Kind == factor.Operator {
		o.ID = key.Owner.ID
	}
	return a.Operators.RefuseFactor(v.r.Context(), o, why)
}

// A passkeyPage has an operator add a passkey.
type passkeyPage struct {
	Passkey passkeyForm
	Faults  []string
}

// showPasskey serves GET /dashboard/account/passkey.
func (a *accountPages) showPasskey(v *visit) error { return a.passkeyPage(v, http.StatusOK, "") }

func (a *accountPages) passkeyPage(v *visit, status int, wrong string) error {
	if !a.factors.passkeys() {
		return problem.NoSuch("page")
	}
	form, err := a.factors.makePasskey(v, passkeyForm{Action: Prefix + "/account/passkey", Button: "Add a passkey",
		Error: wrong})
	if all, ok := faults(err); ok {
		return a.page(v, http.StatusUnprocessableEntity, "Add a passkey", "passkey", passkeyPage{Faults: all})
	}
	if err != nil {
		return err
	}
	return a.page(v, status, "Add a passkey", "passkey", passkeyPage{Passkey: form})
}

// makePasskey is the prompt by which an operator makes a passkey.
func (a *factorPages) makePasskey(v *visit, f passkeyForm) (passkeyForm, error) {
	f.Prompt, f.Form, f.Origin, f.Makes = rand.Text(), a.formToken(v), a.origin, true
	options, err := a.Factors.BeginPasskey(v.r.Context(), ownerOf(v.account), a.flow(v, f.Prompt),
		v.account.Email, v.account.Title())
	f.Options = string(options)
	return f, err
}

// createPasskey makes the passkey of a form, and raises the session by it.
func (a *factorPages) createPasskey(v *visit) error {
	if !a.passkeys() {
		return factor.ErrNone
	}
	key, err := a.Factors.CreatePasskey(v.r.Context(), ownerOf(v.account), !v.session.TwoFactors(),
		a.flow(v, v.form.Get("prompt")), v.form.Get("name"), []byte(v.form.Get("credential")))
	if err != nil {
		return err
	}
	return a.raise(v, key.AMR()...)
}

// addPasskey serves POST /dashboard/account/passkey.
func (a *accountPages) addPasskey(v *visit) error {
	err := a.factors.createPasskey(v)
	if errors.Is(err, factor.ErrNotFirst) {
		return v.redirect(factorPath(""))
	}
	if all, ok := faults(err); ok {
		return a.passkeyPage(v, http.StatusUnprocessableEntity, all[0])
	}
	if err != nil {
		return err
	}
	codes, err := a.Factors.FirstCodes(v.r.Context(), ownerOf(v.operator))
	if err != nil {
		return err
	}
	if codes == nil {
		return v.redirect(Prefix + "/account?done=passkey")
	}
	return a.accountPage(v, http.StatusOK, codes, nil)
}

// renamePasskey serves POST /dashboard/account/passkeys/rename.
func (a *accountPages) renamePasskey(v *visit) error {
	if !a.factors.passkeys() {
		return problem.NoSuch("page")
	}
	if err := a.Factors.Rename(v.r.Context(), ownerOf(v.operator), v.form.Get("factor"), v.form.Get("name")); err != nil {
		return err
	}
	return v.redirect(Prefix + "/account?done=changed")
}
