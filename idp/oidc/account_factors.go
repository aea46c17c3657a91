package oidc

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/templates"
)

// showFactors adds the subscriber's factors to a page, and the form that creates a passkey.
func showFactors(ac *account, r *http.Request, v visit, page *templates.AccountPage) error {
	if ac.Factors == nil {
		return nil
	}
	all, err := ac.Factors.List(r.Context(), idp.OwnerOf(v.SubscriberID))
	if err != nil {
		return err
	}

	at, fault := &page.Factors, page.Factors.Passkey.Error
	*at = templates.NewFactorSection(all)
	at.CanPasskey, at.Stale, at.Passkey.Error = ac.Factors.Passkeys(), page.Stale, fault
	at.Base = "/account"
	at.Hidden = []templates.Hidden{{Name: "project", Value: page.Project}, {Name: "token", Value: page.Token}}
	if at.Stale || !at.CanPasskey {
		return nil
	}

	options, err := ac.Factors.BeginPasskey(r.Context(), idp.OwnerOf(v.SubscriberID), accountFlow(v),
		nameOf(v.sub), v.sub.Title())
	if errors.Is(err, factor.ErrTooMany) {
		at.CanPasskey = false
		return nil
	}
	if err != nil {
		return err
	}

	at.Passkey = ac.passkeyForm(options)
	at.Passkey.Error = fault
	return nil
}

func accountFlow(v visit) string { return "account " + v.ID }

// addPasskey serves POST /account/passkeys.
func (ac *account) addPasskey(w http.ResponseWriter, r *http.Request, v visit, form url.Values) error {
	if ac.Factors == nil {
		return errForm
	}

	key, err := ac.Factors.CreatePasskey(r.Context(), idp.OwnerOf(v.SubscriberID), !v.TwoFactors(),
		accountFlow(v), form.Get("name"), []byte(form.Get("credential")))
	if errors.Is(err, factor.ErrNotFirst) {
		return errAgain
	}

	if fault, status := ac.formFault(w, r, err); fault != "" {
		page := templates.AccountPage{Factors: templates.FactorSection{Passkey: templates.Passkey{Error: fault}}}
		return ac.page(w, r, v, page, status)
	}
	if err != nil {
		return err
	}
	return ac.afterFactor(w, r, v, "passkey", key.AMR())
}

// renamePasskey serves POST /account/passkeys/rename.
func (ac *account) renamePasskey(w http.ResponseWriter, r *http.Request, v visit, form url.Values) error {
	if ac.Factors == nil {
		return errForm
	}
	err := ac.Factors.Rename(r.Context(), idp.OwnerOf(v.SubscriberID), form.Get("factor"), form.Get("name"))
	if err != nil && !errors.Is(err, problem.NotFound) {
		return err
	}
	return backToAccount(w, v, "renamed")
}

// beginApp serves POST /account/app. It shows the QR code for an authenticator app.
func (ac *account) beginApp(w http.ResponseWriter, r *http.Request, v visit, _ url.Values) error {
	return ac.appPage(w, r, v, "", http.StatusOK)
}

func (ac *account) appPage(w http.ResponseWriter, r *http.Request, v visit, fault string, status int) error {
	if ac.Factors == nil {
		return errForm
	}
	app, err := ac.appForm(r, v.Login, v.sub, fault)
	if err != nil {
		return err
	}
	page := templates.AccountApp{
		Project:       v.ProjectID,
		Token:         ac.formToken(v.Login),
		Account:       accountURL(v.ProjectID),
		Authenticator: app,
	}
	return ac.write(w, r, page, templates.Options{Status: status})
}

// confirmApp serves POST /account/app/confirm, which contains the first code from the app.
func (ac *account) confirmApp(w http.ResponseWriter, r *http.Request, v visit, form url.Values) error {
	if ac.Factors == nil {
		return errForm
	}

	err := ac.Factors.ConfirmTOTP(r.Context(), idp.OwnerOf(v.SubscriberID), !v.TwoFactors(),
		enrolFlow(v.Login), form.Get("code"))
	if errors.Is(err, factor.ErrNotFirst) {
		return errAgain
	}
	if errors.Is(err, factor.ErrEnrolled) {
		return backToAccount(w, v, "totp")
	}

	if fault, status := ac.formFault(w, r, err); fault != "" {
		return ac.appPage(w, r, v, fault, status)
	}
	if err != nil {
		return err
	}
	return ac.afterFactor(w, r, v, "totp", []string{"otp"})
}

// afterFactor raises a login with the factor that its subscriber has just set up. If the subscriber
// has no recovery codes yet, it creates and shows them.
func (ac *account) afterFactor(w http.ResponseWriter, r *http.Request, v visit, done string, amr []string) error {
	s, err := ac.Logins.Raise(r.Context(), v.ID, v.SubscriberID, amr)
	if err != nil {
		return err
	}
	if err := ac.logins.use(w, r, s); err != nil {
		return err
	}

	v.Login = s
	codes, err := ac.Factors.FirstCodes(r.Context(), idp.OwnerOf(v.SubscriberID))
	if err != nil {
		return err
	}

	if codes == nil {
		return backToAccount(w, v, done)
	}
	return ac.codesPage(w, r, v, codes, done)
}

func (ac *account) codesPage(w http.ResponseWriter, r *http.Request, v visit, codes []string, done string) error {
	page := templates.RecoveryCodes{Account: accountURL(v.ProjectID) + "&done=" + done, Codes: codes}
	return ac.write(w, r, page, templates.Options{Scripts: true})
}

// newCodes serves POST /account/codes. A login without two factors gets no codes, even if a second
// factor was set up a moment ago.
func (ac *account) newCodes(w http.ResponseWriter, r *http.Request, v visit, form url.Values) error {
	set, err := ac.Logins.FactorsOf(r.Context(), v.SubscriberID)
	if err != nil {
		return err
	}
	if !set.Any() || !v.TwoFactors() {
		return backToAccount(w, v, "")
	}
	return ac.once(ac.makeCodes)(w, r, v, form)
}

func (ac *account) makeCodes(w http.ResponseWriter, r *http.Request, v visit, _ url.Values) error {
	codes, err := ac.Factors.NewCodes(r.Context(), idp.OwnerOf(v.SubscriberID))
	if err != nil {
		return err
	}
	return ac.codesPage(w, r, v, codes, "codes")
}

// removeFactor serves POST /account/factors/remove. It refuses to remove the last passkey of a
// subscriber without a password, who could otherwise no longer sign in.
func (ac *account) removeFactor(w http.ResponseWriter, r *http.Request, v visit, form url.Values) error {
	if ac.Factors == nil {
		return errForm
	}
	remove := ac.Factors.Remove
	if v.sub.PasswordHash == "" {
		remove = ac.Factors.RemoveExceptLast
	}

	err := remove(r.Context(), idp.OwnerOf(v.SubscriberID), form.Get("factor"))
	if errors.Is(err, factor.ErrLastPasskey) {
		page := templates.AccountPage{Factors: templates.FactorSection{Passkey: templates.Passkey{
			Error: ac.words(r).Say("passkeys.last"),
		}}}
		return ac.page(w, r, v, page, http.StatusUnprocessableEntity)
	}
	if err != nil && !errors.Is(err, problem.NotFound) {
		return err
	}
	return backToAccount(w, v, "removed")
}
