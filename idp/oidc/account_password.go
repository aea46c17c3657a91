package oidc

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/templates"
)

func showPassword(a *API, r *http.Request, v visit, page *templates.AccountPage) error {
	page.Password.Set, page.Password.Rule = v.sub.PasswordHash != "", a.passwordRule(r)
	return nil
}

// changePassword serves POST /account/password. Who has a password shows that it knows
// it; who has none must have signed in lately, and who has a second factor, with that.
func (a *API) changePassword(w http.ResponseWriter, r *http.Request, v visit, form url.Values) error {
	owes, err := a.owesFactor(r, v)
	if err != nil {
		return err
	}
	if owes || v.sub.PasswordHash == "" && !a.lately(v.Session) {
		return a.beginAccount(w, r, v.ProjectID, &v)
	}
	s, err := a.ChangePassword(r.Context(), v.Session, form.Get("current"), form.Get("password"), a.visitor(r))
	if p := problem.First(err); p != nil && p.Kind == problem.RateLimited {
		page := templates.AccountPage{Password: templates.PasswordSection{Error: a.throttled(w, r, p),
			ErrorIn: "current"}}
		return a.accountPage(w, r, v, page, http.StatusTooManyRequests)
	}
	if p := problem.First(err); p != nil && p.Kind == problem.Invalid {
		page := templates.AccountPage{Password: templates.PasswordSection{Error: a.fault(r, p), ErrorIn: p.Param}}
		return a.accountPage(w, r, v, page, http.StatusUnprocessableEntity)
	}
	if errors.Is(err, problem.Unauthenticated) {
		return a.beginAccount(w, r, v.ProjectID, nil)
	}
	if err != nil {
		return err
	}
	if err := a.setLogin(w, r, s); err != nil {
		return err
	}
	return backToAccount(w, v, "password")
}
