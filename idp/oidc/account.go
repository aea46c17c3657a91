package oidc

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/limit"
	"github.com/selvage/selvage/internal/once"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/templates"
)

// The account page consists of sections. Each section has its own template, and a function in
// [sections] that fills it in. The file of this function also contains the handlers of the
// section's forms.

// account serves the page on which subscribers manage their account.
type account struct {
	*pages
	flow   *flow
	logins *browserLogins
	logout *logout
	forms  *once.Guard
}

// formsKept is how long a form that was sent is remembered. By then, its page is too old to be sent
// again by accident.
const formsKept = 12 * time.Hour

func newAccount(pg *pages, f *flow, logins *browserLogins, lo *logout, sessions session.Store) *account {
	forms := once.Forms{Sessions: sessions, Kind: "account-form", Kept: formsKept, Now: pg.Now}
	return &account{pages: pg, flow: f, logins: logins, logout: lo, forms: once.New(forms, pg.log)}
}

// A visit says who uses the account page: the browser's login and its subscriber.
type visit struct {
	idp.Login
	sub fabric.Subscriber
}

// A section fills in one section of the page.
type section func(ac *account, r *http.Request, v visit, page *templates.AccountPage) error

// sections lists all sections of the page.
var sections = []section{
	showProfile, showAddress, showPassword, showFactors, showSessions, showApps, showData, showDisplay,
}

// showAccount serves GET /account. The query parameter project selects the project. With the parameter
// again, subscribers whose login is too old to change how they sign in must sign in again.
func (ac *account) showAccount(w http.ResponseWriter, r *http.Request) error {
	projectID, err := ac.project(r, r.URL.Query().Get("project"))
	if err != nil {
		return err
	}
	v, err := ac.visitOf(r, projectID)
	if errors.Is(err, problem.Unauthenticated) {
		return ac.logIn(w, r, projectID, nil)
	}
	if err != nil {
		return err
	}
	if r.URL.Query().Has("again") {
		may, err := ac.mayChange(r, v)
		if err != nil {
			return err
		}
		if !may {
			return ac.logIn(w, r, projectID, &v)
		}
	}
	notice := ac.words(r).Say(notices[r.URL.Query().Get("done")])
	return ac.page(w, r, v, templates.AccountPage{Notice: notice}, http.StatusOK)
}

// notices maps each completed change to its message.
var notices = map[string]string{
	"profile":  "done.profile",
	"passkey":  "done.passkey",
	"renamed":  "done.renamed",
	"totp":     "done.totp",
	"codes":    "done.codes",
	"removed":  "done.removed",
	"link":     "done.link",
	"password": "done.password",
	"session":  "done.session",
	"display":  "done.display",
	"app":      "done.app",
}

// project returns the ID of the project whose account page is shown. This is the project that the
// request asks for. If that is "", it is the project of the newest of the browser's current logins.
// If there is no current login, it is the only project.
func (ac *account) project(r *http.Request, asked string) (string, error) {
	if asked != "" {
		return asked, nil
	}

	b, err := ac.browsers.Open(r)
	if err != nil {
		return "", err
	}

	var last idp.Login
	for projectID := range b.Values() {
		l, err := ac.logins.live(r, projectID)
		if err != nil {
			return "", err
		}
		if l.inUse && l.all[0].AuthTime.After(last.AuthTime) {
			last = l.all[0]
		}
	}

	if last.ID != "" {
		return last.ProjectID, nil
	}
	only, err := ac.OnlyProject(r.Context())
	if err != nil {
		return "", err
	}
	if only == "" {
		return "", errWhichAccount
	}
	return only, nil
}

var errWhichAccount = pageError(http.StatusNotFound, "error.account", "error.account-text")

// visitOf returns a visit with the browser's current login in a project. If there is none, or its
// subscriber was deleted, it returns problem.Unauthenticated.
func (ac *account) visitOf(r *http.Request, projectID string) (visit, error) {
	l, err := ac.logins.live(r, projectID)
	if err != nil {
		return visit{}, err
	}
	if !l.inUse {
		return visit{}, problem.NoCredentials()
	}
	presentationOf(r).client.ProjectID = projectID
	v := visit{Login: l.all[0]}
	v.sub, err = ac.Subscribers.FindSubscriber(r.Context(), projectID, v.SubscriberID)
	if errors.Is(err, problem.NotFound) {
		return v, problem.NoCredentials()
	}
	if err != nil {
		return v, err
	}
	presentationOf(r).account = v.sub.Claims.Locale
	return v, nil
}

// logIn starts a login that leads to the account page. again is nil, or a visit whose login is too
// old or lacks a factor. The subscriber of this visit must then sign in again.
func (ac *account) logIn(w http.ResponseWriter, r *http.Request, projectID string, again *visit) error {
	if err := ac.Limits.PassNetwork(r.Context(), limit.AuthorizePerNetwork, web.Network(r)); err != nil {
		return err // the request is stored, so it counts as an authorization request
	}
	req, c, err := ac.Requests.ForAccount(r.Context(), projectID)
	if errors.Is(err, problem.NotFound) {
		return errWhichAccount
	}
	if err != nil {
		return err
	}
	if again != nil {
		req.Prompt, req.LoginHint, req.Meant = []string{"login"}, again.sub.Email, []string{again.SubscriberID}
	}
	return ac.flow.proceed(w, r, c, req)
}

// page fills in all sections of the given page and writes it.
func (ac *account) page(w http.ResponseWriter, r *http.Request, v visit, page templates.AccountPage, status int) error {
	page.Project, page.Email = v.ProjectID, v.sub.Email
	page.Name = cmp.Or(v.sub.FullName(), v.sub.Email, ac.words(r).Say("account.title"))
	page.Token = ac.formToken(v.Login)
	may, err := ac.mayChange(r, v)
	if err != nil {
		return err
	}
	page.Stale = !may
	for _, show := range sections {
		if err := show(ac, r, v, &page); err != nil {
			return err
		}
	}
	return ac.write(w, r, page, templates.Options{Status: status, Scripts: true, Isolated: true})
}

// mayChange reports whether a login may change how its subscriber signs in. The login must be
// recent and must not lack a required second factor.
func (ac *account) mayChange(r *http.Request, v visit) (bool, error) {
	owes, err := ac.owesFactor(r, v)
	return ac.isRecent(v.Login) && !owes, err
}

// owesFactor reports whether a login has no second factor although the subscriber has one now.
// Somebody who knew only the password may have made the login before the factor was set up. The
// login must therefore not permit more than the password does.
func (ac *account) owesFactor(r *http.Request, v visit) (bool, error) {
	if v.TwoFactors() {
		return false, nil
	}
	set, err := ac.Logins.FactorsOf(r.Context(), v.SubscriberID)
	return set.Any(), err
}

// signInAgain serves POST /account/sign-in.
func (ac *account) signInAgain(w http.ResponseWriter, r *http.Request, v visit, _ url.Values) error {
	return ac.logIn(w, r, v.ProjectID, &v)
}

// accountURL returns the URL of a project's account page.
func accountURL(projectID string) string { return "/account?project=" + url.QueryEscape(projectID) }

// backToAccount redirects to the account page, which shows the message for done.
func backToAccount(w http.ResponseWriter, v visit, done string) error {
	seeOther(w, accountURL(v.ProjectID)+"&done="+done)
	return nil
}
