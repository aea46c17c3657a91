package oidc

import (
	"net/http"
	"net/url"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/templates"
)

func showPassword(ac *account, r *http.Request, v visit, page *templates.AccountPage) error {
	page.Password.Set, page.Password.Rule = v.sub.PasswordHash != "", ac.passwordRule(r)
	return nil
}

// passwordRule returns a sentence that states how long a new password must be.
func (pg *pages) passwordRule(r *http.Request) string {
	least, most := pg.Fabric.Subscribers.PasswordLength()
	return pg.words(r).Say("password.rule", "Least", least, "Most", most)
}

// changePassword serves POST /account/password. A subscriber with a password must enter it. A
// subscriber without one must have signed in recently. A subscriber with a second factor must have
// presented it.
func (ac *account) changePassword(w http.ResponseWriter, r *http.Request, v visit, form url.Values) error {
	owes, err := ac.owesFactor(r, v)
	if err != nil {
		return err
	}
	if owes || v.sub.PasswordHash == "" && !ac.isRecent(v.Login) {
		return errAgain
	}

	s, err := ac.Accounts.ChangePassword(r.Context(), v.Login, form.Get("current"), form.Get("password"), ac.visitor(r))
	if p := problem.First(err); p != nil && p.Kind == problem.RateLimited {
		section := templates.PasswordSection{Error: ac.throttled(w, r, p), ErrorIn: "current"}
		return ac.page(w, r, v, templates.AccountPage{Password: section}, http.StatusTooManyRequests)
	}
	if p := problem.First(err); p != nil && p.Kind == problem.Invalid {
		section := templates.PasswordSection{Error: ac.fault(r, p), ErrorIn: p.Param}
		return ac.page(w, r, v, templates.AccountPage{Password: section}, http.StatusUnprocessableEntity)
	}
	if err != nil {
		return err
	}

	if err := ac.logins.use(w, r, s); err != nil {
		return err
	}
	return backToAccount(w, v, "password")
}
