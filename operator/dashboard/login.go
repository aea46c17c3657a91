package dashboard

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/operator"
)

// loginPages sign operators in and out, and set up new ones.
type loginPages struct {
	*site
	factors *factorPages
}

// A loginPage asks for e-mail and password.
type loginPage struct {
	Email, Next string
	Passkey     passkeyForm
	Faults      []string
}

// showLogin serves GET /dashboard/login.
func (a *loginPages) showLogin(v *visit) error {
	next := ownPath(v.r.URL.Query().Get("next"))
	if v.operator.ID != "" {
		return v.redirect(orFront(next))
	}
	return a.loginPage(v, http.StatusOK, loginPage{Next: next}, "")
}

// loginPage shows the page; wrongKey is what was wrong with a passkey.
func (a *loginPages) loginPage(v *visit, status int, p loginPage, passkeyFault string) (err error) {
	if p.Passkey, err = a.offerPasskey(v, p.Next, passkeyFault); err != nil {
		return err
	}
	return a.page(v, status, "Sign in", "login", p)
}

// logIn serves POST /dashboard/login.
func (a *loginPages) logIn(v *visit) error {
	email, next := v.form.Get("username"), ownPath(v.form.Get("next"))
	s, cookie, err := a.Operators.SignIn(v.r.Context(), email, v.form.Get("password"), visitor(v.r),
		func(o operator.Operator) (bool, error) {
			return a.factors.needsFactor(v, o)
		})
	if errors.Is(err, problem.Unauthenticated) || errors.Is(err, problem.RateLimited) {
		p, status := problem.First(err), http.StatusUnprocessableEntity
		if p.Kind == problem.RateLimited {
			status = http.StatusTooManyRequests
			web.RetryAfter(v.w, p)
		}
		return a.loginPage(v, status, loginPage{Email: email, Next: next, Faults: []string{p.Message}}, "")
	}
	if err != nil {
		return err
	}
	a.cookies.Set(v.w, v.r, sessionCookie, cookie)
	if !s.Proven {
		return v.redirect(factorPath(next))
	}
	return v.redirect(orFront(next))
}

// logOut serves POST /dashboard/logout.
func (a *loginPages) logOut(v *visit) error {
	if err := a.Operators.EndSession(v.r.Context(), v.operator.ID, v.session.ID); err != nil {
		return err
	}
	a.cookies.Set(v.w, v.r, sessionCookie, "")
	return v.redirect(Prefix + "/login")
}

// A setupPage lets somebody in who has a link.
type setupPage struct {
	Token     string
	Email     string // of whom the link is for, or typed before
	Fixed     bool   // the e-mail is the link's
	Name      string
	Recovers  bool // it sets the password of an operator there is
	Role      string
	Project   string
	InvitedBy string
	Shortest  int
	Faults    []string
}

func (a *loginPages) setupPage(v *visit, token string) (setupPage, error) {
	l, err := a.Operators.FindLink(v.r.Context(), token)
	if err != nil {
		return setupPage{}, err
	}
	p := setupPage{
		Token: token, Email: l.Email, Fixed: l.Email != "", Recovers: l.OperatorID != "",
		Role: string(l.Role.Role), InvitedBy: l.MadeBy,
		Shortest: operator.MinPassword,
	}
	if l.Role.ProjectID != "" {
		project, err := a.Fabric.Projects.Find(v.r.Context(), l.Role.ProjectID)
		if err != nil {
			return p, err
		}
		p.Project = project.Name
	}
	return p, nil
}

// linkExpired answers a link that is not good.
func (a *loginPages) linkExpired(v *visit) error {
	return a.page(v, http.StatusNotFound, "This link no longer works", "error", errorPage{
		Text: "It was used, is older than a day, or never was a link. Whoever sent it can make another one.",
	})
}

// showSetup serves GET /dashboard/setup: it uses nothing up, so that whoever looks
// through mail burns no link.
func (a *loginPages) showSetup(v *visit) error {
	p, err := a.setupPage(v, v.r.URL.Query().Get("token"))
	if errors.Is(err, problem.NotFound) {
		return a.linkExpired(v)
	}
	if err != nil {
		return err
	}
	return a.page(v, http.StatusOK, "Set up", "setup", p)
}

// setUp serves POST /dashboard/setup.
func (a *loginPages) setUp(v *visit) error {
	p, err := a.setupPage(v, v.form.Get("token"))
	if errors.Is(err, problem.NotFound) {
		return a.linkExpired(v)
	}
	if err != nil {
		return err
	}
	email, name, secret := v.form.Get("username"), strings.TrimSpace(v.form.Get("name")), v.form.Get("password")
	if !p.Fixed {
		p.Email = email
	}
	p.Name = name
	o, err := a.Operators.Use(v.r.Context(), p.Token, operator.Input{Email: &email, Name: &name, Password: &secret})
	if p.Faults, _ = faults(err); p.Faults != nil {
		return a.page(v, http.StatusUnprocessableEntity, "Set up", "setup", p)
	}
	if errors.Is(err, problem.NotFound) {
		return a.linkExpired(v)
	}
	if err != nil {
		return err
	}
	if o.Disabled {
		return v.redirect(Prefix + "/login")
	}
	wants, err := a.factors.needsFactor(v, o)
	if err != nil {
		return err
	}
	_, cookie, err := a.Operators.Begin(v.r.Context(), o, visitor(v.r), !wants)
	if err != nil {
		return err
	}
	a.cookies.Set(v.w, v.r, sessionCookie, cookie)
	if wants {
		return v.redirect(factorPath(""))
	}
	return v.redirect(Prefix)
}

// ownPath returns a path of the dashboard, or "" for anything else: nothing leads away.
func ownPath(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host != "" || u.Scheme != "" || strings.ContainsAny(raw, "\\\r\n\t") || len(raw) > 2000 {
		return ""
	}
	if u.Path != Prefix && !strings.HasPrefix(u.Path, Prefix+"/") {
		return ""
	}
	return u.RequestURI()
}

func orFront(path string) string {
	if path == "" {
		return Prefix
	}
	return path
}

func nextQuery(path string) string { return url.Values{"next": {path}}.Encode() }

// refererPath returns the path of the page on which a form was.
func refererPath(r *http.Request) string {
	u, err := url.Parse(r.Referer())
	if err != nil {
		return ""
	}
	return u.RequestURI()
}
