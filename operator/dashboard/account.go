package dashboard

import (
	"net/http"
	"time"

	"github.com/selvage/selvage/operator"
)

// accountPages show and change an operator's own account.
type accountPages struct {
	*site
	factors *factorPages
}

// An accountPage is what an operator has of its own.
type accountPage struct {
	Email, Name string
	Roles       []roleRow
	Sessions    []sessionRow
	Factors     []factorRow
	HasApp      bool
	CanPasskey  bool
	MayAdd      bool
	Required    bool
	Codes       []string // new recovery codes, shown this once
	Shortest    int
	Now         time.Time
	Faults      []string
}

type sessionRow struct {
	operator.Session
	Device string
	Here   bool
}

// showAccount serves GET /dashboard/account.
func (a *accountPages) showAccount(v *visit) error { return a.accountPage(v, http.StatusOK, nil, nil) }

func (a *accountPages) accountPage(v *visit, status int, codes, wrong []string) error {
	sessions, err := a.Operators.Sessions(v.r.Context(), v.who.ID)
	if err != nil {
		return err
	}
	projects, err := a.projectsOf(v)
	if err != nil {
		return err
	}
	p := accountPage{
		Email: v.who.Email, Name: v.who.Name, Roles: operatorRowOf(v, v.who, projects).Roles,
		Shortest: operator.MinPassword, Now: v.now, Faults: wrong,
		Codes: codes, MayAdd: a.Factors != nil, CanPasskey: a.factors.passkeys(), Required: a.requiresFactor(v.who),
	}
	if p.Factors, p.HasApp, err = a.factorsOf(v); err != nil {
		return err
	}
	for _, s := range sessions {
		p.Sessions = append(p.Sessions, sessionRow{s, device(s.UserAgent), s.ID == v.session.ID})
	}
	return a.page(v, status, "My account", "account", p)
}

// changePassword serves POST /dashboard/account/password.
func (a *accountPages) changePassword(v *visit) error {
	o, err := a.Operators.SetPassword(v.r.Context(), v.who, v.form.Get("current"), v.form.Get("password"),
		visitor(v.r), v.session.ID)
	if all, ok := faults(err); ok {
		return a.accountPage(v, http.StatusUnprocessableEntity, nil, all)
	}
	if err != nil {
		return err
	}
	v.whose = o
	if err := a.factors.raise(v); err != nil {
		return err
	}
	return v.redirect(Prefix + "/account?done=password")
}

// revokeSession serves POST /dashboard/account/sessions/revoke: one session, or all but
// this one.
func (a *accountPages) revokeSession(v *visit) (err error) {
	done := "ended"
	if id := v.form.Get("session"); id != "" {
		err = a.Operators.EndSession(v.r.Context(), v.who.ID, id)
	} else {
		done = "othersended"
		err = a.Operators.EndOthers(v.r.Context(), v.who.ID, v.session.ID)
	}
	if err != nil {
		return err
	}
	return v.redirect(Prefix + "/account?done=" + done)
}
