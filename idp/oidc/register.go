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

// showRegister serves GET /register?id=.
func (a *API) showRegister(w http.ResponseWriter, r *http.Request) error {
	req, c, err := a.resume(r, r.URL.Query().Get("id"))
	if err != nil {
		return err
	}
	open, err := a.MayRegister(r.Context(), c.ProjectID)
	if err != nil {
		return err
	}
	if !open {
		return errNoRegistration
	}
	return a.registerPage(w, r, c, req, templates.Register{Email: req.LoginHint}, http.StatusOK)
}

func (a *API) registerPage(w http.ResponseWriter, r *http.Request, c idp.Client, req idp.AuthRequest, page templates.Register, status int) error {
	page.ID, page.App, page.Host, page.Rule = req.ID, a.appName(r, c, req), req.Host(), a.passwordRule(r)
	return a.write(w, r, page, templates.Options{Status: status})
}

// register serves POST /register: the form of that page. The answer, and what is done
// for it, is the same for every address.
func (a *API) register(w http.ResponseWriter, r *http.Request) error {
	form, req, c, err := a.flowForm(w, r)
	if err != nil {
		return err
	}
	in := idp.Registrant{
		Email: shortened(form.Get("username")), Password: form.Get("password"),
		FirstName: strings.TrimSpace(form.Get("first_name")), LastName: strings.TrimSpace(form.Get("last_name")),
	}
	err = a.Register(r.Context(), c, req, in, web.Network(r))
	page := templates.Register{Email: in.Email, FirstName: in.FirstName, LastName: in.LastName}
	p := problem.First(err)
	switch {
	case errors.Is(err, problem.NotFound):
		return errNoRegistration
	case p != nil && p.Kind == problem.RateLimited:
		web.RetryAfter(w, p)
		page.Error = a.words(r).Say("register.throttled")
		return a.registerPage(w, r, c, req, page, http.StatusTooManyRequests)
	case p != nil && p.Kind == problem.Invalid:
		page.Error, page.ErrorIn = a.fault(r, p), p.Param
		return a.registerPage(w, r, c, req, page, http.StatusUnprocessableEntity)
	case err != nil:
		return err
	}
	return a.write(w, r, registrationSent(a.words(r), a.mailbox), templates.Options{})
}

// waiting returns the request that a link was asked for in, if this is its browser and it
// waits still.
func (a *API) waiting(r *http.Request, l idp.Link) (idp.AuthRequest, idp.Client, error) {
	req, c, err := a.Resume(r.Context(), l.Request, a.cookies.FlowOf(r))
	if errors.Is(err, problem.NotFound) || errors.Is(err, problem.Forbidden) {
		return idp.AuthRequest{}, idp.Client{}, nil
	}
	learn(r, req, c)
	return req, c, err
}

// showWelcome serves GET /welcome?token=. It changes nothing.
func (a *API) showWelcome(w http.ResponseWriter, r *http.Request) error {
	token := r.URL.Query().Get("token")
	l, err := a.link(r, mail.Registration, token)
	if err != nil {
		return err
	}
	return a.welcomePage(w, r, l, token, "", http.StatusOK)
}

// welcomePage asks whether the account shall be made where its password was typed, and
// elsewhere for another password.
func (a *API) welcomePage(w http.ResponseWriter, r *http.Request, l idp.Link, token, wrong string, status int) error {
	req, _, err := a.waiting(r, l)
	if err != nil {
		return err
	}
	project, err := a.Linked(r.Context(), l)
	if err != nil {
		return over(l.Purpose, err)
	}
	o := templates.Options{Status: status, FormAction: formAction(req.RedirectURI)}
	if req.Waits(l) {
		page := welcomeHere(a.words(r), l.Email, project.Name, token)
		page.Action = formAt(r, page.Action)
		return a.write(w, r, page, o)
	}
	page := welcomeElsewhere(a.words(r), l.Email, project.Name, token)
	page.Action, page.Rule, page.Error = formAt(r, page.Action), a.passwordRule(r), wrong
	return a.write(w, r, page, o)
}

// welcome serves POST /welcome: the form of that page, which uses the link up and makes
// the account. In the browser that asked for it the request goes on, signed in.
func (a *API) welcome(w http.ResponseWriter, r *http.Request) error {
	form, err := postForm(w, r)
	if err != nil {
		return err
	}
	token := form.Get("token")
	l, err := a.link(r, mail.Registration, token)
	if err != nil {
		return err
	}
	req, c, err := a.waiting(r, l)
	if err != nil {
		return err
	}
	l, sub, err := a.CompleteRegistration(r.Context(), token, req, form.Get("password"))
	wrong := problem.First(err)
	switch {
	case errors.Is(err, problem.NotFound):
		return over(mail.Registration, err)
	case errors.Is(err, problem.Conflict):
		return errHasAccount
	case wrong != nil && wrong.Kind == problem.Invalid:
		return a.welcomePage(w, r, l, token, a.fault(r, wrong), http.StatusUnprocessableEntity)
	case err != nil:
		return err
	}
	if req.ID == "" {
		if err := a.markDevice(w, r, sub.ProjectID, sub.ID, false); err != nil {
			return err
		}
		return a.write(w, r, accountMade(a.words(r), l.Email, l.ProjectID), templates.Options{})
	}
	s, err := a.LogInRegistered(r.Context(), sub, a.visitor(r))
	if err != nil {
		return err
	}
	req.Pending = nil
	return a.entered(w, r, c, req, s)
}
