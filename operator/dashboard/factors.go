package dashboard

import (
	"net/http"

	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/problem"
)

// A factorRow is a factor as it is listed.
type factorRow struct {
	factor.Factor
	Title string
}

// factorsOf lists what the operator has.
func (a *accountPages) factorsOf(v *visit) (rows []factorRow, hasApp bool, err error) {
	if a.Factors == nil {
		return nil, false, nil
	}
	all, err := a.Factors.List(v.r.Context(), ownerOf(v.who))
	for _, f := range all {
		hasApp = hasApp || f.Type == factor.TypeTOTP
		rows = append(rows, factorRowOf(f))
	}
	return rows, hasApp, err
}

func factorRowOf(f factor.Factor) factorRow {
	row := factorRow{f, "Passkey " + f.Name}
	switch f.Type {
	case factor.TypeTOTP:
		row.Title = "Authenticator app"
	case factor.TypeRecovery:
		row.Title = "Recovery codes, those left of ten: " + string(rune('0'+min(9, f.Left)))
		if f.Left > 9 {
			row.Title = "Recovery codes, all ten"
		}
	}
	return row
}

// showApp serves GET /dashboard/account/app.
func (a *accountPages) showApp(v *visit) error {
	if a.Factors == nil {
		return problem.NoSuch("page")
	}
	return a.factors.enrolPage(v, http.StatusOK, enrolPage{Action: Prefix + "/account/app", Next: Prefix + "/account"})
}

// addApp serves POST /dashboard/account/app.
func (a *accountPages) addApp(v *visit) error {
	if a.Factors == nil {
		return problem.NoSuch("page")
	}
	return a.factors.confirmApp(v, enrolPage{Action: Prefix + "/account/app", Next: Prefix + "/account"})
}

// newCodes serves POST /dashboard/account/codes.
func (a *accountPages) newCodes(v *visit) error {
	if a.Factors == nil {
		return problem.NoSuch("page")
	}
	has, err := a.factors.factorsThere(v)
	if err != nil {
		return err
	}
	if !has.Any() || !v.session.TwoFactors() { // codes alone are no factor, nor is one shown that was set up this moment
		return v.redirect(Prefix + "/account")
	}
	codes, err := a.Factors.NewCodes(v.r.Context(), ownerOf(v.who))
	if err != nil {
		return err
	}
	return a.accountPage(v, http.StatusOK, codes, nil)
}

// removeFactor serves POST /dashboard/account/factors/remove.
func (a *accountPages) removeFactor(v *visit) error {
	if a.Factors == nil {
		return problem.NoSuch("page")
	}
	if err := a.Factors.Remove(v.r.Context(), ownerOf(v.who), v.form.Get("factor")); err != nil {
		return err
	}
	return v.redirect(Prefix + "/account?done=factor")
}
