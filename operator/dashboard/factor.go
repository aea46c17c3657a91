package dashboard

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/operator"
	"github.com/selvage/selvage/templates"
)

// factorPages serves the pages that check the second factors of operators and set up new ones.
type factorPages struct {
	*site
}

func ownerOf(o operator.Operator) factor.Owner {
	return factor.Owner{Kind: factor.Operator, ID: o.ID}
}

// factorSet returns the kinds of second factors that the signed-in operator has set up.
func (a *factorPages) factorSet(v *visit) (factor.Set, error) {
	if a.Factors == nil {
		return factor.Set{}, nil
	}
	return a.Factors.Has(v.r.Context(), ownerOf(v.operator))
}

// needsFactor reports whether an operator has to use a second factor or set one up.
func (a *factorPages) needsFactor(v *visit, o operator.Operator) (bool, error) {
	if a.Factors == nil {
		return false, nil
	}
	set, err := a.Factors.Has(v.r.Context(), ownerOf(o))
	return set.Any() || a.requiresFactor(o), err
}

// requiresFactor reports whether any of an operator's roles requires a second factor.
func (a *site) requiresFactor(o operator.Operator) bool {
	return a.Factors != nil && slices.ContainsFunc(
		o.Roles, func(m operator.Membership) bool { return slices.Contains(a.RequireFactor, m.Role) })
}

func factorPath(next string) string {
	if next == "" {
		return Prefix + "/factor"
	}
	return Prefix + "/factor?" + nextQuery(next)
}

// A factorPage is the form for a second factor: a code or a passkey.
type factorPage struct {
	Next    string
	App     bool // whether the operator has an authenticator app
	Passkey passkeyForm
	Faults  faults
}

// showFactor serves GET /dashboard/factor. An operator without a second factor is redirected to the
// page for setting one up.
func (a *factorPages) showFactor(v *visit) error {
	next := ownPath(v.r.URL.Query().Get("next"))
	has, err := a.Factors.Has(v.r.Context(), ownerOf(v.account))
	if err != nil {
		return err
	}
	if !has.Any() {
		return v.redirect(Prefix + "/enrol" + strings.TrimPrefix(factorPath(next), Prefix+"/factor"))
	}
	return a.factorPage(v, http.StatusOK, next, nil)
}

func (a *factorPages) factorPage(v *visit, status int, next string, wrong faults) error {
	has, err := a.Factors.Has(v.r.Context(), ownerOf(v.account))
	if err != nil {
		return err
	}
	p := factorPage{Next: next, App: has.TOTP}
	prompt := passkeyForm{Action: Prefix + "/factor", Next: next}
	if p.Faults, p.Passkey, err = a.passkeyPrompt(v, has, prompt, wrong); err != nil {
		return err
	}
	return a.page(v, status, "Second factor", "factor", p)
}

// passkeyPrompt returns the prompt for the operator's passkeys, if there are any. If wrong
// describes a rejected passkey, passkeyPrompt moves the message to the prompt.
func (a *factorPages) passkeyPrompt(
	v *visit, has factor.Set, f passkeyForm, wrong faults,
) (faults, passkeyForm, error) {
	if !has.Passkeys || !a.passkeys() {
		return wrong, passkeyForm{}, nil
	}
	if v.form.Has("credential") && len(wrong) > 0 {
		f.Error, wrong = wrong[0].Text, nil
	}
	f.Button = "Use a passkey"
	owner := ownerOf(v.account)
	f, err := a.askPasskey(v, f, &owner)
	return wrong, f, err
}

// checkFactor serves POST /dashboard/factor. It accepts a passkey, a code from the app or a
// recovery code, and then records the second factor in the session.
func (a *factorPages) checkFactor(v *visit) error {
	next := ownPath(v.form.Get("next"))
	check := a.checkCode
	if v.form.Has("credential") {
		check = a.checkPasskey
	}
	methods, err := check(v, v.account)
	if wrong, ok := wrongCode(err); ok {
		return a.factorPage(v, http.StatusUnprocessableEntity, next, wrong)
	}
	if err != nil {
		return err
	}
	return a.raiseAndContinue(v, next, methods...)
}

// checkPasskey verifies the passkey in a form, which must belong to the operator. It returns the
// authentication methods that the passkey proves. A rejected passkey counts against the limit and
// is recorded.
func (a *factorPages) checkPasskey(v *visit, o operator.Operator) ([]string, error) {
	from := visitor(v.r)
	if err := a.Operators.CountPasskey(v.r.Context(), from); err != nil {
		return nil, err
	}

	key, err := a.usePasskey(v)
	if err == nil && key.Owner != ownerOf(o) {
		err = factor.ErrUnknown
	}

	if _, isWrong := wrongCode(err); isWrong {
		return nil, errors.Join(a.Operators.RefuseFactor(v.r.Context(), o, err), err)
	}
	if err != nil {
		return nil, err
	}
	a.Operators.ReturnPasskey(v.r.Context(), from)
	return key.AMR(), nil
}

// checkCode verifies the code in a form and returns its authentication method. A code that contains
// letters is a recovery code; any other code must come from the app. A rejected code is recorded.
func (a *factorPages) checkCode(v *visit, o operator.Operator) (methods []string, err error) {
	code := v.form.Get("code")
	check, method := a.Factors.CheckTOTP, "otp"
	isLetter := func(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }
	if strings.ContainsFunc(code, isLetter) {
		check, method = a.Factors.UseCode, "recovery"
	}

	err = check(v.r.Context(), ownerOf(o), a.placeOf(v, o), code)
	if _, isWrong := wrongCode(err); isWrong {
		if failed := a.Operators.RefuseFactor(v.r.Context(), o, err); failed != nil {
			return nil, failed
		}
	}
	if err != nil {
		return nil, err
	}
	return []string{method}, nil
}

// placeOf returns the request's network if the operator has signed in from it with two factors
// before, and otherwise "".
func (a *factorPages) placeOf(v *visit, o operator.Operator) factor.Place {
	if from := visitor(v.r); a.Operators.ProvenPlace(v.r.Context(), o, from) {
		return factor.Place("network " + from.Network)
	}
	return ""
}

// wrongCode returns the messages for a rejected code. It returns false for other errors.
func wrongCode(err error) (faults, bool) {
	p := problem.First(err)
	switch {
	case p != nil && p.Kind == problem.NotFound:
		return faultAt("", factor.ErrWrong.Message), true
	case p != nil && p.Kind == problem.RateLimited:
		return faultAt("", p.Message), true
	}
	return describeFaults(err)
}

// raiseAndContinue adds authentication methods to the session and redirects to next.
func (a *factorPages) raiseAndContinue(v *visit, next string, methods ...string) error {
	if err := a.raise(v, methods...); err != nil {
		return err
	}
	return v.redirect(orFront(next))
}

// raise records authentication methods in the session, and replaces its cookie.
func (a *factorPages) raise(v *visit, methods ...string) error {
	s, cookie, err := a.Operators.Raise(v.r.Context(), v.account, v.session, visitor(v.r), methods...)
	if err != nil {
		return err
	}
	v.session = s
	v.cookie = cookie
	v.operator = v.account
	a.cookies.Set(v.w, v.r, sessionCookie, cookie)
	return nil
}

// An enrolPage is the page on which an operator sets up an authenticator app or a passkey.
type enrolPage struct {
	Action, Next string
	App          templates.AppForm
	Forced       bool
	Passkey      passkeyForm // offered as an alternative if Forced
	Codes        []string    // recovery codes, shown at the end
}

// enrolPage shows the secret to scan. The secret is stored in the session, and discarded with the session.
func (a *factorPages) enrolPage(v *visit, status int, p enrolPage) error {
	e, err := a.Factors.BeginTOTP(v.r.Context(), ownerOf(v.account), flowOf(v), "selvage "+hostOf(a.PublicURL),
		v.account.Email)
	if errors.Is(err, factor.ErrEnrolled) {
		return v.redirect(orFront(p.Next))
	}
	if err != nil {
		return err
	}

	p.App = templates.NewAppForm(e.Secret, e.DataURL(), e.URL, p.App.Error)
	if !p.Forced {
		return a.page(v, status, "Set up an authenticator app", "enrol", p)
	}
	if a.passkeys() {
		prompt := passkeyForm{Action: p.Action, Next: p.Next, Button: "Set up a passkey", Error: p.Passkey.Error}
		if p.Passkey, err = a.makePasskey(v, prompt); err != nil {
			return err
		}
	}
	return a.page(v, status, "Set up a second factor", "enrol", p)
}

func flowOf(v *visit) string { return "operator session " + v.session.ID }

func hostOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return raw
	}
	return u.Host
}

// showEnrol serves GET /dashboard/enrol. Operators who must have a second factor, but have none,
// must set one up there before doing anything else.
func (a *factorPages) showEnrol(v *visit) error {
	return a.ifNoFactor(v, func() error {
		return a.enrolPage(v, http.StatusOK,
			enrolPage{Action: Prefix + "/enrol", Next: ownPath(v.r.URL.Query().Get("next")), Forced: true})
	})
}

// ifNoFactor runs do if the operator has no second factor yet. Otherwise it only redirects to the
// page that asks for the existing factor.
func (a *factorPages) ifNoFactor(v *visit, do func() error) error {
	has, err := a.Factors.Has(v.r.Context(), ownerOf(v.account))
	if err != nil {
		return err
	}
	if has.Any() {
		return v.redirect(factorPath(""))
	}
	return do()
}

// enrol serves POST /dashboard/enrol. It sets up a passkey or an authenticator app, records the
// second factor in the session and shows the recovery codes.
func (a *factorPages) enrol(v *visit) error {
	return a.ifNoFactor(v, func() error {
		p := enrolPage{Action: Prefix + "/enrol", Next: ownPath(v.form.Get("next")), Forced: true}
		if !v.form.Has("credential") {
			return a.confirmApp(v, p)
		}

		err := a.createPasskey(v)
		if errors.Is(err, factor.ErrNotFirst) {
			return v.redirect(factorPath(p.Next))
		}

		if all, ok := describeFaults(err); ok {
			p.Passkey.Error = all[0].Text
			return a.enrolPage(v, http.StatusUnprocessableEntity, p)
		}
		if err != nil {
			return err
		}
		return a.showCodes(v, p)
	})
}

// confirmApp sets up an app with its first code, records the second factor in the session and shows
// the recovery codes.
func (a *factorPages) confirmApp(v *visit, p enrolPage) error {
	err := a.Factors.ConfirmTOTP(v.r.Context(), ownerOf(v.account), !v.session.TwoFactors(), flowOf(v),
		v.form.Get("code"))
	if errors.Is(err, factor.ErrNotFirst) {
		return v.redirect(factorPath(p.Next))
	}

	if all, ok := wrongCode(err); ok {
		p.App.Error = all[0].Text
		return a.enrolPage(v, http.StatusUnprocessableEntity, p)
	}
	if err != nil {
		return err
	}

	if err := a.raise(v, "otp"); err != nil {
		return err
	}
	return a.showCodes(v, p)
}

// showCodes shows the recovery codes that come with the first factor.
func (a *factorPages) showCodes(v *visit, p enrolPage) (err error) {
	if p.Codes, err = a.Factors.FirstCodes(v.r.Context(), ownerOf(v.operator)); err != nil {
		return err
	}
	p.Next = orFront(p.Next)
	return a.page(v, http.StatusOK, "Your recovery codes", "enrol", p)
}
