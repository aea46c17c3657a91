package dashboard

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/operator"
)

// loginPages serves the pages that sign operators in and out, and set up new operators.
type loginPages struct {
	*site
	factors *factorPages
}

// A loginPage is the form for email and password.
type loginPage struct {
	Email, Next string
	Passkey     passkeyForm
	Faults      faults
}

// showLogin serves GET /dashboard/login.
func (a *loginPages) showLogin(v *visit) error {
	next := ownPath(v.r.URL.Query().Get("next"))
	if v.operator.ID != "" {
		return v.redirect(orFront(next))
	}
	return a.loginPage(v, http.StatusOK, loginPage{Next: next}, "")
}

// loginPage shows the login form. If passkeyFault is not empty, it explains why a passkey was
// rejected.
func (a *loginPages) loginPage(v *visit, status int, p loginPage, passkeyFault string) (err error) {
	if p.Passkey, err = a.offerPasskey(v, p.Next, passkeyFault); err != nil {
		return err
	}
	return a.page(v, status, "Sign in", "login", p)
}

// logIn serves POST /dashboard/login. It checks the email and password, and sets the session
// cookie. If a second factor is set up or required, it continues with that factor.
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
		return a.loginPage(v, status, loginPage{Email: email, Next: next, Faults: faultAt("", p.Message)}, "")
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

// offerPasskey returns the passkey prompt for the login page. A visitor who has requested too many
// prompts gets the page without a prompt.
func (a *loginPages) offerPasskey(v *visit, next, wrong string) (passkeyForm, error) {
	if !a.factors.passkeys() {
		return passkeyForm{}, nil
	}
	err := a.Operators.AdmitPrompt(v.r.Context(), visitor(v.r))
	if errors.Is(err, problem.RateLimited) {
		return passkeyForm{}, nil
	}
	if err != nil {
		return passkeyForm{}, err
	}
	return a.factors.askPasskey(v, passkeyForm{
		Action: Prefix + "/login/passkey", Next: next, Waits: true, Button: "Use a passkey", Error: wrong,
	}, nil)
}

// logInByPasskey serves POST /dashboard/login/passkey. A passkey counts as both factors, because
// the device has verified its user.
func (a *loginPages) logInByPasskey(v *visit) error {
	next := ownPath(v.form.Get("next"))
	key, cookie, err := a.checkLogin(v)
	if err == nil {
		a.cookies.Set(v.w, v.r, sessionCookie, cookie)
		return v.redirect(orFront(next))
	}

	p := problem.First(err)
	if p == nil || p.Kind != problem.Invalid && p.Kind != problem.RateLimited {
		return err
	}
	status := http.StatusTooManyRequests
	if p.Kind == problem.Invalid {
		status = http.StatusUnprocessableEntity
		if err := a.refusePasskey(v, key, err); err != nil {
			return err
		}
	}
	web.RetryAfter(v.w, p)
	return a.loginPage(v, status, loginPage{Next: next}, p.Message)
}

// checkLogin verifies the passkey in the login form and begins a session for the operator who owns
// it.
func (a *loginPages) checkLogin(v *visit) (key factor.Passkey, cookie string, err error) {
	from := visitor(v.r)
	err = a.Operators.CountPasskey(v.r.Context(), from)
	if err != nil {
		return key, "", err
	}
	key, err = a.factors.usePasskey(v)
	if err != nil {
		return key, "", err
	}
	_, cookie, err = a.Operators.SignInByPasskey(v.r.Context(), key.Owner.ID, key.AMR(), from)
	if errors.Is(err, problem.Unauthenticated) {
		err = factor.ErrUnknown
	}
	return key, cookie, err
}

// refusePasskey records in the audit trail that a passkey was rejected, and names the passkey's owner
// if the owner is known.
func (a *loginPages) refusePasskey(v *visit, key factor.Passkey, why error) error {
	o := v.account
	if o.ID == "" && key.Owner.Kind == factor.Operator {
		o.ID = key.Owner.ID
	}
	return a.Operators.RefuseFactor(v.r.Context(), o, why)
}

// logOut serves POST /dashboard/logout.
func (a *loginPages) logOut(v *visit) error {
	if err := a.Operators.EndSession(v.r.Context(), v.operator.ID, v.session.ID); err != nil {
		return err
	}
	a.cookies.Set(v.w, v.r, sessionCookie, "")
	return v.redirect(Prefix + "/login")
}

// A setupPage is the form that an invitation link or a password reset link opens.
type setupPage struct {
	Token     string
	Email     string // the email in the link, or as typed
	Fixed     bool   // whether the email comes from the link and cannot be changed
	Name      string
	Recovers  bool // whether the link sets a new password for an existing operator
	Role      string
	Project   string
	InvitedBy string
	Shortest  int
	Faults    faults
}

func (a *loginPages) setupPage(v *visit, token string) (setupPage, error) {
	l, err := a.Operators.FindLink(v.r.Context(), token)
	if err != nil {
		return setupPage{}, err
	}

	p := setupPage{
		Token:     token,
		Email:     l.Email,
		Fixed:     l.Email != "",
		Recovers:  l.OperatorID != "",
		Role:      string(l.Role.Role),
		InvitedBy: l.MadeBy,
		Shortest:  operator.MinPassword,
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

// linkExpired responds to a link that is no longer valid.
func (a *loginPages) linkExpired(v *visit) error {
	return a.page(v, http.StatusNotFound, "This link no longer works", "error", errorPage{
		Text: "It was used, is older than a day, or was never valid. Ask the person who sent it for a new one.",
	})
}

// showSetup serves GET /dashboard/setup. It does not use up the link, so mail scanners that open
// links do no harm.
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

// setUp serves POST /dashboard/setup. It uses up the link, creates or recovers the operator's
// account, and signs the operator in.
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
	p.Faults, _ = describeFaults(err, "email", "name", "password")
	p.Faults = p.Faults.moved("email", "username")
	if p.Faults != nil {
		return a.page(v, http.StatusUnprocessableEntity, "Set up", "setup", p)
	}
	if errors.Is(err, problem.NotFound) { // another person has used the link in the meantime
		return a.linkExpired(v)
	}
	if err != nil {
		return err
	}
	if o.Disabled {
		return v.redirect(Prefix + "/login")
	}
	return a.beginSession(v, o)
}

// beginSession signs in an operator who has just set a password.
func (a *loginPages) beginSession(v *visit, o operator.Operator) error {
	needsFactor, err := a.factors.needsFactor(v, o)
	if err != nil {
		return err
	}
	_, cookie, err := a.Operators.Begin(v.r.Context(), o, visitor(v.r), !needsFactor)
	if err != nil {
		return err
	}
	a.cookies.Set(v.w, v.r, sessionCookie, cookie)
	if needsFactor {
		return v.redirect(factorPath(""))
	}
	return v.redirect(Prefix)
}

// ownPath returns raw if it is a path of the dashboard. Otherwise it returns "", so that no
// redirect leads to another site.
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

// refererPath returns the path of the page whose form was submitted.
func refererPath(r *http.Request) string {
	u, err := url.Parse(r.Referer())
	if err != nil {
		return ""
	}
	return u.RequestURI()
}

// nextOf returns a query for the login page that names the page to return to. This is the requested
// page, or the page whose form was submitted.
func nextOf(r *http.Request) string {
	path := r.URL.RequestURI()
	if r.Method != http.MethodGet {
		path = refererPath(r)
	}
	path = ownPath(path)
	if path == "" || path == Prefix {
		return ""
	}
	return "?" + nextQuery(path)
}
