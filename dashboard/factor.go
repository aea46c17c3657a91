package dashboard

import (
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"strings"

	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/operator"
)

func ownerOf(o operator.Operator) factor.Owner {
	return factor.Owner{Kind: factor.Operator, ID: o.ID}
}

// factorsThere tells which second factors the operator who is signed in has.
func (a *API) factorsThere(v *visit) (factor.Set, error) {
	if a.Factors == nil {
		return factor.Set{}, nil
	}
	return a.Factors.Has(v.r.Context(), ownerOf(v.who))
}

// wantsFactor reports whether an operator has to show a second factor, or to set one up.
func (a *API) wantsFactor(v *visit, o operator.Operator) (bool, error) {
	if a.Factors == nil {
		return false, nil
	}
	set, err := a.Factors.Has(v.r.Context(), ownerOf(o))
	return set.Any() || a.RequireFactor, err
}

func factorPath(next string) string {
	if next == "" {
		return Prefix + "/factor"
	}
	return Prefix + "/factor?" + nextQuery(next)
}

// A factorPage asks for a code.
type factorPage struct {
	Next   string
	Faults []string
}

// showFactor serves GET /dashboard/factor. Who has none yet sets one up.
func (a *API) showFactor(v *visit) error {
	next := ownPath(v.r.URL.Query().Get("next"))
	has, err := a.Factors.Has(v.r.Context(), ownerOf(v.whose))
	if err != nil {
		return err
	}
	if !has.Any() {
		return v.redirect(Prefix + "/enrol" + strings.TrimPrefix(factorPath(next), Prefix+"/factor"))
	}
	return a.page(v, http.StatusOK, "Second factor", "factor", factorPage{Next: next})
}

// checkFactor serves POST /dashboard/factor: a code of the app, or a recovery code.
func (a *API) checkFactor(v *visit) error {
	next := ownPath(v.form.Get("next"))
	method, err := a.checkCode(v, v.whose)
	if all, ok := wrongCode(err); ok {
		return a.page(v, http.StatusUnprocessableEntity, "Second factor", "factor", factorPage{Next: next, Faults: all})
	}
	if err != nil {
		return err
	}
	return a.arrive(v, next, method)
}

// checkCode takes the code of a form, of the app or a recovery code, and says what it
// proves. One that is not taken is written down.
func (a *API) checkCode(v *visit, o operator.Operator) (method string, err error) {
	code, method := v.form.Get("code"), "otp"
	check := a.Factors.CheckTOTP
	if strings.ContainsFunc(code, func(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }) {
		check, method = a.Factors.UseCode, "recovery"
	}
	err = check(v.r.Context(), ownerOf(o), a.placeOf(v, o), code)
	if _, wrong := wrongCode(err); wrong {
		if unsaid := a.Operators.RefuseFactor(v.r.Context(), o, err); unsaid != nil {
			return "", unsaid
		}
	}
	return method, err
}

// placeOf names the network that an operator tries from, if it has signed in there before.
func (a *API) placeOf(v *visit, o operator.Operator) factor.Place {
	if from := visitor(v.r); a.Operators.KnowsPlace(v.r.Context(), o, from) {
		return factor.Place("network " + from.Network)
	}
	return ""
}

// wrongCode gives the sentences of a code that was not taken.
func wrongCode(err error) ([]string, bool) {
	if p := problem.First(err); p != nil && (p.Kind == problem.RateLimited || p.Kind == problem.NotFound) {
		if p.Kind == problem.NotFound {
			p = factor.ErrWrong
		}
		return []string{p.Message}, true
	}
	return faults(err)
}

// arrive raises the session of who has shown what was asked for, and goes on.
func (a *API) arrive(v *visit, next string, methods ...string) error {
	if err := a.raise(v, methods...); err != nil {
		return err
	}
	return v.redirect(orFront(next))
}

func (a *API) raise(v *visit, methods ...string) error {
	s, cookie, err := a.Operators.Raise(v.r.Context(), v.session, visitor(v.r), methods...)
	if err != nil {
		return err
	}
	v.session, v.cookie = s, cookie
	a.cookies.Set(v.w, v.r, sessionCookie, cookie)
	return nil
}

// An enrolPage shows an authenticator app what to learn.
type enrolPage struct {
	Action, Next, Secret string
	Picture              template.URL // a data URL that is made here
	Forced               bool
	Codes                []string // once it is done
	Faults               []string
}

// enrolPage shows what to scan; the flow ends with the session.
func (a *API) enrolPage(v *visit, status int, p enrolPage) error {
	e, err := a.Factors.BeginTOTP(v.r.Context(), ownerOf(v.whose), flowOf(v), "selvage "+hostOf(a.PublicURL), v.whose.Email)
	if errors.Is(err, factor.ErrEnrolled) {
		return v.redirect(orFront(p.Next))
	}
	if err != nil {
		return err
	}
	p.Secret, p.Picture = e.Secret, template.URL(e.DataURL())
	return a.page(v, status, "Set up an authenticator app", "enrol", p)
}

func flowOf(v *visit) string { return "operator session " + v.session.ID }

func hostOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return raw
	}
	return u.Host
}

// showEnrol serves GET /dashboard/enrol: an operator that must have a second factor and
// has none sets it up before anything else.
func (a *API) showEnrol(v *visit) error {
	return a.firstOnly(v, func() error {
		return a.enrolPage(v, http.StatusOK, enrolPage{Action: Prefix + "/enrol", Next: ownPath(v.r.URL.Query().Get("next")), Forced: true})
	})
}

// firstOnly keeps who has a second factor from setting another up instead of showing it.
func (a *API) firstOnly(v *visit, do func() error) error {
	has, err := a.Factors.Has(v.r.Context(), ownerOf(v.whose))
	if err != nil {
		return err
	}
	if has.Any() {
		return v.redirect(factorPath(""))
	}
	return do()
}

// enrol serves POST /dashboard/enrol.
func (a *API) enrol(v *visit) error {
	return a.firstOnly(v, func() error {
		p := enrolPage{Action: Prefix + "/enrol", Next: ownPath(v.form.Get("next")), Forced: true}
		return a.confirmApp(v, p, func() error { v.who = v.whose; return a.raise(v, "otp") })
	})
}

// confirmApp takes the first code of an app, and shows the recovery codes.
func (a *API) confirmApp(v *visit, p enrolPage, then func() error) error {
	owner := ownerOf(v.whose)
	err := a.Factors.ConfirmTOTP(v.r.Context(), owner, flowOf(v), v.form.Get("code"))
	var ok bool
	if p.Faults, ok = wrongCode(err); ok {
		return a.enrolPage(v, http.StatusUnprocessableEntity, p)
	}
	if err != nil {
		return err
	}
	if p.Codes, err = a.Factors.FirstCodes(v.r.Context(), owner); err != nil {
		return err
	}
	if err := then(); err != nil {
		return err
	}
	p.Next = orFront(p.Next)
	return a.page(v, http.StatusOK, "Your recovery codes", "enrol", p)
}

// A factorRow is a factor as it is listed.
type factorRow struct {
	factor.Factor
	Title string
}

// factorsOf lists what the operator has.
func (a *API) factorsOf(v *visit) (rows []factorRow, hasApp bool, err error) {
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
func (a *API) showApp(v *visit) error {
	if a.Factors == nil {
		return problem.NoSuch("page")
	}
	return a.enrolPage(v, http.StatusOK, enrolPage{Action: Prefix + "/account/app", Next: Prefix + "/account"})
}

// addApp serves POST /dashboard/account/app.
func (a *API) addApp(v *visit) error {
	if a.Factors == nil {
		return problem.NoSuch("page")
	}
	return a.confirmApp(v, enrolPage{Action: Prefix + "/account/app", Next: Prefix + "/account"}, func() error { return a.raise(v, "otp") })
}

// newCodes serves POST /dashboard/account/codes.
func (a *API) newCodes(v *visit) error {
	if a.Factors == nil {
		return problem.NoSuch("page")
	}
	codes, err := a.Factors.NewCodes(v.r.Context(), ownerOf(v.who))
	if err != nil {
		return err
	}
	return a.accountPage(v, http.StatusOK, codes, nil)
}

// removeFactor serves POST /dashboard/account/factors/remove.
func (a *API) removeFactor(v *visit) error {
	if a.Factors == nil {
		return problem.NoSuch("page")
	}
	if err := a.Factors.Remove(v.r.Context(), ownerOf(v.who), v.form.Get("factor")); err != nil {
		return err
	}
	return v.redirect(Prefix + "/account?done=factor")
}
