package oidc

import (
	"errors"
	"net/http"
	"strings"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/templates"
)

// registrationPages serves the pages on which people create their own accounts.
type registrationPages struct {
	*pages
	flow   *flow
	logins *browserLogins
	links  *linkPages
}

// showRegister serves GET /register?id=.
func (rp *registrationPages) showRegister(w http.ResponseWriter, r *http.Request) error {
	req, c, err := rp.resume(r, r.URL.Query().Get("id"))
	if err != nil {
		return err
	}
	open, err := rp.MayRegister(r.Context(), c.ProjectID)
	if err != nil {
		return err
	}
	if !open {
		return errNoRegistration
	}
	return rp.registerPage(w, r, c, req, templates.Register{Email: req.LoginHint}, http.StatusOK)
}

func (rp *registrationPages) registerPage(w http.ResponseWriter, r *http.Request, c idp.Client,
	req idp.AuthRequest, page templates.Register, status int) error {
	page.ID, page.App, page.Host = req.ID, rp.appName(r, c, req), req.Host()
	page.Rule = rp.passwordRule(r)
	return rp.write(w, r, page, templates.Options{Status: status})
}

// register serves POST /register, the form on the page of showRegister. It takes the same steps for
// every address, and sends the same response.
func (rp *registrationPages) register(w http.ResponseWriter, r *http.Request) error {
	form, req, c, err := rp.requestForm(w, r)
	if err != nil {
		return err
	}
	in := idp.Registrant{
		Email: typedEmail(form.Get("username")), Password: form.Get("password"),
		FirstName: strings.TrimSpace(form.Get("first_name")), LastName: strings.TrimSpace(form.Get("last_name")),
	}

	err = rp.Accounts.Register(r.Context(), c, req, in, web.Network(r))
	page := templates.Register{Email: in.Email, FirstName: in.FirstName, LastName: in.LastName}

	p := problem.First(err)
	switch {
	case errors.Is(err, problem.NotFound):
		return errNoRegistration
	case p != nil && p.Kind == problem.RateLimited:
		web.RetryAfter(w, p)
		page.Error = rp.words(r).Say("register.throttled")
		return rp.registerPage(w, r, c, req, page, http.StatusTooManyRequests)
	case p != nil && p.Kind == problem.Invalid:
		page.Error, page.ErrorIn = rp.fault(r, p), p.Param
		return rp.registerPage(w, r, c, req, page, http.StatusUnprocessableEntity)
	case err != nil:
		return err
	}

	return rp.write(w, r, registrationSent(rp.words(r), rp.mailbox), templates.Options{})
}

// waiting returns the request in which a link was requested. If the request has ended, or another
// browser began it, waiting returns a zero request.
func (rp *registrationPages) waiting(r *http.Request, l idp.Link) (idp.AuthRequest, idp.Client, error) {
	req, c, err := rp.Requests.Resume(r.Context(), l.Request, rp.cookies.FlowOf(r))
	if errors.Is(err, problem.NotFound) || errors.Is(err, problem.Forbidden) {
		return idp.AuthRequest{}, idp.Client{}, nil
	}
	learn(r, req, c)
	return req, c, err
}

// showWelcome serves GET /welcome?token=. It does not use the link up.
func (rp *registrationPages) showWelcome(w http.ResponseWriter, r *http.Request) error {
	token := r.URL.Query().Get("token")
	l, err := rp.links.find(r, mail.Registration, token)
	if err != nil {
		return err
	}
	return rp.welcomePage(w, r, l, token, "", http.StatusOK)
}

// welcomePage asks the person to confirm the account, in the browser in which the password was
// typed. In other browsers it asks for another password.
func (rp *registrationPages) welcomePage(w http.ResponseWriter, r *http.Request, l idp.Link, token,
	wrong string, status int) error {
	req, _, err := rp.waiting(r, l)
	if err != nil {
		return err
	}

	project, err := rp.Letters.LinkProject(r.Context(), l)
	if err != nil {
		return convertMissing(l.Purpose, err)
	}

	o := templates.Options{Status: status, FormAction: formAction(req.RedirectURI)}
	if req.Waits(l) {
		page := welcomeHere(rp.words(r), l.Email, project.Name, token)
		page.Action = formAt(r, page.Action)
		return rp.write(w, r, page, o)
	}

	page := welcomeElsewhere(rp.words(r), l.Email, project.Name, token)
	page.Action, page.Rule, page.Error = formAt(r, page.Action), rp.passwordRule(r), wrong
	return rp.write(w, r, page, o)
}

// welcome serves POST /welcome, the form on the page of showWelcome. It creates the account, and
// the link is then used up. In the browser where the account was requested, it signs the person in
// and continues the request.
func (rp *registrationPages) welcome(w http.ResponseWriter, r *http.Request) error {
	form, err := postForm(w, r)
	if err != nil {
		return err
	}
	token := form.Get("token")
	l, err := rp.links.find(r, mail.Registration, token)
	if err != nil {
		return err
	}

	req, c, err := rp.waiting(r, l)
	if err != nil {
		return err
	}

	l, sub, err := rp.Accounts.CompleteRegistration(r.Context(), token, req, form.Get("password"))
	wrong := problem.First(err)
	switch {
	case errors.Is(err, problem.NotFound):
		return convertMissing(mail.Registration, err)
	case errors.Is(err, problem.Conflict):
		return errHasAccount
	case wrong != nil && wrong.Kind == problem.Invalid:
		return rp.welcomePage(w, r, l, token, rp.fault(r, wrong), http.StatusUnprocessableEntity)
	case err != nil:
		return err
	}

	// The link was opened in another browser, which has no request to continue.
	if req.ID == "" {
		if err := rp.logins.markDevice(w, r, sub.ProjectID, sub.ID, false); err != nil {
			return err
		}
		return rp.write(w, r, accountMade(rp.words(r), l.Email, l.ProjectID), templates.Options{})
	}

	s, err := rp.Logins.LogInRegistered(r.Context(), sub, rp.visitor(r))
	if err != nil {
		return err
	}
	req.Pending = nil
	return rp.flow.enter(w, r, c, req, s)
}
