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

// These are the errors for people who cannot create an account, or already have one.
var (
	errNoRegistration = pageError(http.StatusNotFound, "error.registration", "error.registration-text")
	errHasAccount     = pageError(http.StatusConflict, "error.registered", "error.registered-text")
)

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
	sent := func(w http.ResponseWriter) error { return rp.registrationSent(w, r) }
	return rp.links.askOnce(w, r, form, sent, func(w http.ResponseWriter, r *http.Request) error {
		return rp.askRegistration(w, r, c, req, idp.Registrant{
			Email:     typedEmail(form.Get("username")),
			Password:  form.Get("password"),
			FirstName: strings.TrimSpace(form.Get("first_name")),
			LastName:  strings.TrimSpace(form.Get("last_name")),
			Language:  rp.words(r).Tag,
		})
	})
}

// askRegistration requests an account for the person who has sent the form of register.
func (rp *registrationPages) askRegistration(w http.ResponseWriter, r *http.Request, c idp.Client,
	req idp.AuthRequest, in idp.Registrant) error {
	err := rp.Accounts.Register(r.Context(), c, req, in, web.Network(r))
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

	return rp.registrationSent(w, r)
}

// registrationSent shows that an email is on its way. Apart from the address, which the person has typed,
// the page is the same for every address.
func (rp *registrationPages) registrationSent(w http.ResponseWriter, r *http.Request) error {
	say := rp.words(r)
	notice := templates.Notice{
		ID:      "mail-sent",
		Title:   say.Say("forgot.sent"),
		Text:    []string{say.Say("register.sent-text", "Email", sentTo(r)), say.Say("register.sent-link")},
		Mailbox: rp.mailbox,
	}
	return rp.write(w, r, notice, templates.Options{})
}

// waiting returns the request in which a link was requested. If the request has ended, or another
// browser began it, waiting returns a zero request.
func (rp *registrationPages) waiting(r *http.Request, l idp.Link) (idp.AuthRequest, idp.Client, error) {
	req, c, err := rp.Requests.Resume(r.Context(), l.Request, rp.cookies.FlowOfRequest(r, l.Request))
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

	say := rp.words(r)
	options := templates.Options{Status: status, FormAction: formAction(req.RedirectURI)}
	if req.Waits(l) {
		return rp.write(w, r, templates.Confirm{
			Title:  say.Say("welcome.title"),
			Text:   say.Say("welcome.here", "Project", project.Name, "Email", l.Email),
			Action: formAt(r, "/welcome"),
			Token:  token,
			Button: say.Say("welcome.submit"),
		}, options)
	}
	return rp.write(w, r, templates.NewPassword{
		Title:  say.Say("welcome.title"),
		Text:   say.Say("welcome.elsewhere", "Project", project.Name, "Email", l.Email),
		Action: formAt(r, "/welcome"),
		Token:  token,
		Email:  l.Email,
		Rule:   rp.passwordRule(r),
		Error:  wrong,
		Button: say.Say("welcome.submit"),
	}, options)
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
		say := rp.words(r)
		return rp.write(w, r, templates.Notice{
			ID:      "account-made",
			Title:   say.Say("welcome.done"),
			Text:    []string{say.Say("welcome.done-text", "Email", l.Email)},
			Account: accountLink(say, l.ProjectID),
		}, templates.Options{})
	}

	s, err := rp.Logins.LogInRegistered(r.Context(), sub, rp.visitor(r))
	if err != nil {
		return err
	}
	req.Pending = nil
	return rp.flow.enter(w, r, c, req, s)
}
