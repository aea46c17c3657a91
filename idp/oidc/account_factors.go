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

// showFactors tells which factors there are, and begins a passkey that may be added.
func showFactors(a *API, r *http.Request, v visit, page *templates.AccountPage) error {
	if a.Factors == nil {
		return nil
	}
	all, err := a.Factors.List(r.Context(), idp.OwnerOf(v.SubscriberID))
	if err != nil {
		return err
	}
	at := &page.Factors
	at.There, at.CanPasskey = true, a.Factors.Passkeys()
	for _, f := range all {
		item := templates.FactorItem{ID: f.ID, Name: f.Name, BackedUp: f.BackedUp, Created: f.Created, Used: f.Used}
		switch f.Type {
		case factor.TypePasskey:
			at.Passkeys = append(at.Passkeys, item)
		case factor.TypeTOTP:
			at.App = &item
		case factor.TypeRecovery:
			at.Codes = f.Left
		}
	}
	if page.Stale || !at.CanPasskey {
		return nil
	}
	options, err := a.Factors.BeginPasskey(r.Context(), idp.OwnerOf(v.SubscriberID), accountFlow(v),
		nameOf(v.sub), v.sub.Title())
	if errors.Is(err, factor.ErrTooMany) {
		at.CanPasskey = false
		return nil
	}
	if err != nil {
		return err
	}
	fault := at.Passkey.Error
	at.Passkey = a.passkeyForm(options)
	at.Passkey.Error = fault
	return nil
}

func accountFlow(v visit) string { return "account " + v.ID }

// addPasskey serves POST /account/passkeys.
func (a *API) addPasskey(w http.ResponseWriter, r *http.Request, v visit, form url.Values) error {
	if a.Factors == nil {
		return errForm
	}
	key, err := a.Factors.CreatePasskey(r.Context(), idp.OwnerOf(v.SubscriberID), !v.TwoFactors(),
		accountFlow(v), form.Get("name"), []byte(form.Get("credential")))
	if errors.Is(err, factor.ErrNotFirst) {
		return a.beginAccount(w, r, v.ProjectID, &v)
	}
	if fault, status := a.toldFault(w, r, err); fault != "" {
		page := templates.AccountPage{Factors: templates.FactorSection{Passkey: templates.Passkey{Error: fault}}}
		return a.accountPage(w, r, v, page, status)
	}
	if err != nil {
		return err
	}
	return a.afterFactor(w, r, v, "passkey", key.AMR())
}

// renamePasskey serves POST /account/passkeys/rename.
func (a *API) renamePasskey(w http.ResponseWriter, r *http.Request, v visit, form url.Values) error {
	if a.Factors == nil {
		return errForm
	}
	err := a.Factors.Rename(r.Context(), idp.OwnerOf(v.SubscriberID), form.Get("factor"), form.Get("name"))
	if err != nil && !errors.Is(err, problem.NotFound) {
		return err
	}
	return backToAccount(w, v, "renamed")
}

// beginApp serves POST /account/app: it shows what an authenticator app scans.
func (a *API) beginApp(w http.ResponseWriter, r *http.Request, v visit, _ url.Values) error {
	return a.appPage(w, r, v, "", http.StatusOK)
}

func (a *API) appPage(w http.ResponseWriter, r *http.Request, v visit, fault string, status int) error {
	if a.Factors == nil {
		return errForm
	}
	app, err := a.appForm(r, v.Session, v.sub, fault)
	if err != nil {
		return err
	}
	page := templates.AccountApp{Project: v.ProjectID, Token: a.formToken(v.Session),
		Account: accountURL(v.ProjectID), Authenticator: app}
	return a.write(w, r, page, templates.Options{Status: status})
}

// confirmApp serves POST /account/app/confirm: the first code of the app.
func (a *API) confirmApp(w http.ResponseWriter, r *http.Request, v visit, form url.Values) error {
	if a.Factors == nil {
		return errForm
	}
	err := a.Factors.ConfirmTOTP(r.Context(), idp.OwnerOf(v.SubscriberID), !v.TwoFactors(),
		enrolFlow(v.Session), form.Get("code"))
	if errors.Is(err, factor.ErrNotFirst) {
		return a.beginAccount(w, r, v.ProjectID, &v)
	}
	if errors.Is(err, factor.ErrEnrolled) {
		return backToAccount(w, v, "totp")
	}
	if fault, status := a.toldFault(w, r, err); fault != "" {
		return a.appPage(w, r, v, fault, status)
	}
	if err != nil {
		return err
	}
	return a.afterFactor(w, r, v, "totp", []string{"otp"})
}

// afterFactor raises the login of a subscriber that has set a factor up, by that, and shows
// the first recovery codes.
func (a *API) afterFactor(w http.ResponseWriter, r *http.Request, v visit, done string, amr []string) error {
	s, err := a.Raise(r.Context(), v.ID, v.SubscriberID, amr)
	if err != nil {
		return err
	}
	if err := a.setLogin(w, r, s); err != nil {
		return err
	}
	v.Session = s
	codes, err := a.Factors.FirstCodes(r.Context(), idp.OwnerOf(v.SubscriberID))
	if err != nil {
		return err
	}
	if codes == nil {
		return backToAccount(w, v, done)
	}
	return a.codesPage(w, r, v, codes, done)
}

func (a *API) codesPage(w http.ResponseWriter, r *http.Request, v visit, codes []string, done string) error {
	page := templates.RecoveryCodes{Account: accountURL(v.ProjectID) + "&done=" + done, Codes: codes}
	return a.write(w, r, page, templates.Options{Scripts: true})
}

// newCodes serves POST /account/codes. A login that owes a factor which was set up this
// moment gets none.
func (a *API) newCodes(w http.ResponseWriter, r *http.Request, v visit, _ url.Values) error {
	set, err := a.FactorsOf(r.Context(), v.SubscriberID)
	if err != nil {
		return err
	}
	if !set.Any() || !v.TwoFactors() {
		return backToAccount(w, v, "")
	}
	codes, err := a.Factors.NewCodes(r.Context(), idp.OwnerOf(v.SubscriberID))
	if err != nil {
		return err
	}
	return a.codesPage(w, r, v, codes, "codes")
}

// removeFactor serves POST /account/factors/remove. The last passkey of somebody without
// a password stays: nothing else lets them in.
func (a *API) removeFactor(w http.ResponseWriter, r *http.Request, v visit, form url.Values) error {
	if a.Factors == nil {
		return errForm
	}
	owner, id := idp.OwnerOf(v.SubscriberID), form.Get("factor")
	all, err := a.Factors.List(r.Context(), owner)
	if err != nil {
		return err
	}
	passkeys, isOne := 0, false
	for _, f := range all {
		if f.Type == factor.TypePasskey {
			passkeys++
			isOne = isOne || f.ID == id
		}
	}
	if v.sub.PasswordHash == "" && isOne && passkeys == 1 {
		page := templates.AccountPage{Factors: templates.FactorSection{Passkey: templates.Passkey{
			Error: a.words(r).Say("passkeys.last"),
		}}}
		return a.accountPage(w, r, v, page, http.StatusUnprocessableEntity)
	}
	err = a.Factors.Remove(r.Context(), owner, id)
	if err != nil && !errors.Is(err, problem.NotFound) {
		return err
	}
	return backToAccount(w, v, "removed")
}
