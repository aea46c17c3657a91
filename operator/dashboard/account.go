package dashboard

import (
	"errors"
	"net/http"
	"strings"

	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/operator"
	"github.com/selvage/selvage/templates"
)

// accountPages serves the pages that show and change the account of the signed-in operator.
type accountPages struct {
	*site
	factors *factorPages
}

// An accountPage is the data of the page for the operator's own account.
type accountPage struct {
	Email    string
	Name     string
	Roles    []roleRow
	Sessions []sessionRow
	Factors  templates.FactorSection
	Codes    []string // new recovery codes, shown only once
	Shortest int      // minimum length of a password
	Faults   faults
}

type sessionRow struct {
	operator.Session
	Device string
	Here   bool // whether it is the session of this browser
}

// showAccount serves GET /dashboard/account.
func (a *accountPages) showAccount(v *visit) error {
	return a.renderAccount(v, http.StatusOK, accountPage{})
}

// refuseAccount shows the account page again, with the errors in a submitted form.
func (a *accountPages) refuseAccount(v *visit, wrong faults) error {
	return a.renderAccount(v, http.StatusUnprocessableEntity, accountPage{Faults: wrong})
}

// renderAccount shows the account page. The caller sets only p's codes and faults.
func (a *accountPages) renderAccount(v *visit, status int, p accountPage) error {
	sessions, err := a.Operators.Sessions(v.r.Context(), v.operator.ID)
	if err != nil {
		return err
	}
	projects, err := a.projectsOf(v)
	if err != nil {
		return err
	}
	projects, err = a.addProjects(v, projects, v.operator.Roles...)
	if err != nil {
		return err
	}

	p.Email = v.operator.Email
	p.Name = v.operator.Name
	p.Roles = operatorRowOf(v, v.operator, projects).Roles
	p.Shortest = operator.MinPassword
	p.Factors, err = a.factorSection(v)
	if err != nil {
		return err
	}

	for _, s := range sessions {
		p.Sessions = append(p.Sessions, sessionRow{
			Session: s,
			Device:  device(s.UserAgent),
			Here:    s.ID == v.session.ID,
		})
	}
	return a.page(v, status, "My account", "account", p)
}

// changeName serves POST /dashboard/account/name.
func (a *accountPages) changeName(v *visit) error {
	name := strings.TrimSpace(v.form.Get("name"))
	_, err := a.Operators.Update(v.r.Context(), v.operator.ID, operator.Input{Name: &name}, v.session.ID)
	if all, ok := describeFaults(err, "name"); ok {
		v.operator.Name = name
		return a.refuseAccount(v, all)
	}
	if err != nil {
		return err
	}
	return v.redirect(Prefix + "/account?done=named")
}

// changePassword serves POST /dashboard/account/password.
func (a *accountPages) changePassword(v *visit) error {
	o, err := a.Operators.SetPassword(v.r.Context(), v.operator, v.form.Get("current"), v.form.Get("password"),
		visitor(v.r), v.session.ID)
	if all, ok := describeFaults(err, "current", "password"); ok {
		return a.refuseAccount(v, all)
	}
	if err != nil {
		return err
	}
	v.account = o
	if err := a.factors.raise(v); err != nil {
		return err
	}
	return v.redirect(Prefix + "/account?done=password")
}

// revokeSession serves POST /dashboard/account/sessions/revoke. It ends one session, or all
// sessions except the current one.
func (a *accountPages) revokeSession(v *visit) error {
	id := v.form.Get("session")
	if id == "" {
		if err := a.Operators.EndOthers(v.r.Context(), v.operator.ID, v.session.ID); err != nil {
			return err
		}
		return v.redirect(Prefix + "/account?done=othersended")
	}

	if err := a.Operators.EndSession(v.r.Context(), v.operator.ID, id); err != nil {
		return err
	}
	return v.redirect(Prefix + "/account?done=ended")
}

// factorSection lists the second factors of the operator.
func (a *accountPages) factorSection(v *visit) (s templates.FactorSection, err error) {
	if a.Factors == nil {
		return s, nil
	}
	all, err := a.Factors.List(v.r.Context(), ownerOf(v.operator))
	if err != nil {
		return s, err
	}

	s = templates.NewFactorSection(all)
	s.CanPasskey = a.factors.passkeys()
	s.Base = Prefix + "/account"
	s.AddPasskey = s.Base + "/passkey"
	s.AddApp = s.Base + "/app"
	s.Hidden = []templates.Hidden{{Name: "form", Value: a.formToken(v)}}
	return s, nil
}

// accountEnrolPage is the page of the operator's own account that adds an authenticator app.
var accountEnrolPage = enrolPage{Action: Prefix + "/account/app", Next: Prefix + "/account"}

// showApp serves GET /dashboard/account/app.
func (a *accountPages) showApp(v *visit) error {
	if a.Factors == nil {
		return problem.NoSuch("page")
	}
	return a.factors.enrolPage(v, http.StatusOK, accountEnrolPage)
}

// addApp serves POST /dashboard/account/app.
func (a *accountPages) addApp(v *visit) error {
	if a.Factors == nil {
		return problem.NoSuch("page")
	}
	return a.factors.confirmApp(v, accountEnrolPage)
}

// A passkeyPage is the form that adds a passkey.
type passkeyPage struct {
	Passkey passkeyForm
	Faults  faults
}

// showPasskey serves GET /dashboard/account/passkey.
func (a *accountPages) showPasskey(v *visit) error { return a.renderPasskey(v, http.StatusOK, "") }

// renderPasskey shows the form that adds a passkey. fault says why the previous attempt failed, or
// is "".
func (a *accountPages) renderPasskey(v *visit, status int, fault string) error {
	if !a.factors.passkeys() {
		return problem.NoSuch("page")
	}
	form, err := a.factors.makePasskey(v, passkeyForm{
		Action: Prefix + "/account/passkey", Button: "Add a passkey", Error: fault,
	})
	if all, ok := describeFaults(err); ok {
		return a.page(v, http.StatusUnprocessableEntity, "Add a passkey", "passkey", passkeyPage{Faults: all})
	}
	if err != nil {
		return err
	}
	return a.page(v, status, "Add a passkey", "passkey", passkeyPage{Passkey: form})
}

// addPasskey serves POST /dashboard/account/passkey.
func (a *accountPages) addPasskey(v *visit) error {
	err := a.factors.createPasskey(v)
	if errors.Is(err, factor.ErrNotFirst) {
		return v.redirect(factorPath(""))
	}
	if all, ok := describeFaults(err); ok {
		return a.renderPasskey(v, http.StatusUnprocessableEntity, all[0].Text)
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
	return a.renderAccount(v, http.StatusOK, accountPage{Codes: codes})
}

// renamePasskey serves POST /dashboard/account/passkeys/rename.
func (a *accountPages) renamePasskey(v *visit) error {
	if !a.factors.passkeys() {
		return problem.NoSuch("page")
	}
	err := a.Factors.Rename(v.r.Context(), ownerOf(v.operator), v.form.Get("factor"), v.form.Get("name"))
	if err != nil {
		return err
	}
	return v.redirect(Prefix + "/account?done=changed")
}

// newCodes serves POST /dashboard/account/codes.
func (a *accountPages) newCodes(v *visit) error {
	if a.Factors == nil {
		return problem.NoSuch("page")
	}
	has, err := a.factors.factorSet(v)
	if err != nil {
		return err
	}
	// Recovery codes require another factor, which the operator must have used in this session.
	if !has.Any() || !v.session.TwoFactors() {
		return v.redirect(Prefix + "/account")
	}

	codes, err := a.Factors.NewCodes(v.r.Context(), ownerOf(v.operator))
	if err != nil {
		return err
	}
	return a.renderAccount(v, http.StatusOK, accountPage{Codes: codes})
}

// removeFactor serves POST /dashboard/account/factors/remove.
func (a *accountPages) removeFactor(v *visit) error {
	if a.Factors == nil {
		return problem.NoSuch("page")
	}
	if err := a.Factors.Remove(v.r.Context(), ownerOf(v.operator), v.form.Get("factor")); err != nil {
		return err
	}
	return v.redirect(Prefix + "/account?done=factor")
}

// setTheme serves POST /dashboard/account/theme. It sets the theme for this browser: light, dark or
// the browser's preference.
func (a *accountPages) setTheme(v *visit) error {
	a.cookies.SetTheme(v.w, v.r, v.form.Get("theme"))
	return v.redirect(orFront(ownPath(refererPath(v.r))))
}

// setLanguage serves POST /dashboard/language. It sets the language for this browser.
func (a *accountPages) setLanguage(v *visit) error {
	if chosen := words.In(v.form.Get("language")); chosen != nil {
		a.cookies.SetLanguage(v.w, v.r, chosen.Tag)
	}
	return v.redirect(orFront(ownPath(refererPath(v.r))))
}
