package oidc

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/templates"
)

// showForgot serves GET /forgot?id=.
func (a *API) showForgot(w http.ResponseWriter, r *http.Request) error {
	req, c, err := a.resume(r, r.URL.Query().Get("id"))
	if err != nil {
		return err
	}
	return a.write(w, r, templates.Forgot{ID: req.ID, App: a.appName(r, c, req), Email: req.LoginHint},
		templates.Options{})
}

// askReset serves POST /forgot: the form of that page. The answer, and what is done for
// it, is the same for every address.
func (a *API) askReset(w http.ResponseWriter, r *http.Request) error {
	form, err := postForm(w, r)
	if err != nil {
		return err
	}
	req, c, err := a.resume(r, form.Get("id"))
	if err != nil {
		return err
	}
	if err := a.askMail(r, mail.Reset, c, req, form.Get("username")); err != nil {
		return err
	}
	return a.write(w, r, templates.Notice{
		ID: "mail-sent", Title: a.words(r).Say("forgot.sent"), Mailbox: a.mailbox,
		Text: []string{
			a.words(r).Say("forgot.sent-text"),
			a.words(r).Say("forgot.sent-link"),
		},
		Button: &templates.Link{Title: a.words(r).Say("back-to-login"), URL: "/login?id=" + url.QueryEscape(req.ID)},
	}, templates.Options{})
}

// askMail asks for a mail, and keeps the request for as long as its link will live.
func (a *API) askMail(r *http.Request, kind mail.Kind, c idp.Client, req idp.AuthRequest, email string) error {
	req.LoginHint = shortened(email)
	if err := a.Suspend(r.Context(), req); err != nil {
		return err
	}
	return a.AskMailIn(r.Context(), a.words(r).Tag, kind, c.ProjectID, email, req.ID, web.Network(r))
}

// shortened bounds what was typed as an address.
func shortened(email string) string {
	if len(email) > 320 {
		return ""
	}
	return email
}

// errLinkOver is the answer to a link that was used before, is too old, or never was one.
var errLinkOver = pageError(http.StatusGone, "error.link", "error.link-text")

// errInvitationOver is the same for an invitation: who has none yet has no app to go back to.
var errInvitationOver = pageError(http.StatusGone, "error.invitation", "error.invitation-text")

// link finds the link of a token, and says so where it is over.
func (a *API) link(r *http.Request, purpose mail.Kind, token string) (idp.Link, error) {
	l, err := a.FindLink(r.Context(), purpose, token)
	followed(r, l)
	return l, over(purpose, err)
}

// followed notes whose pages a link leads to, what it has done included.
func followed(r *http.Request, l idp.Link) {
	mannerOf(r).client = idp.Client{ProjectID: l.ProjectID}
}

func over(purpose mail.Kind, err error) error {
	switch {
	case errors.Is(err, problem.NotFound) && purpose == mail.Invitation:
		return errInvitationOver
	case errors.Is(err, problem.NotFound):
		return errLinkOver
	}
	return err
}

// showReset serves GET /reset?token=. It changes nothing.
func (a *API) showReset(w http.ResponseWriter, r *http.Request) error {
	token := r.URL.Query().Get("token")
	l, err := a.link(r, mail.Reset, token)
	if err != nil {
		return err
	}
	return a.resetPage(w, r, l, token, "", http.StatusOK)
}

func (a *API) resetPage(w http.ResponseWriter, r *http.Request, l idp.Link, token, wrong string, status int) error {
	return a.write(w, r, templates.NewPassword{
		Title: a.words(r).Say("reset.title"), Text: a.words(r).Say("reset.text", "Email", l.Email),
		Action: formAt(r, "/reset"), Token: token, Email: l.Email, Rule: a.passwordRule(r), Error: wrong,
		Button: a.words(r).Say("reset.submit"),
		Note:   a.words(r).Say("reset.note"),
	}, templates.Options{Status: status})
}

// reset serves POST /reset: the form of that page, which uses the link up.
func (a *API) reset(w http.ResponseWriter, r *http.Request) error {
	form, err := postForm(w, r)
	if err != nil {
		return err
	}
	token := form.Get("token")
	l, err := a.ResetPassword(r.Context(), mail.Reset, token, form.Get("password"))
	followed(r, l)
	if wrong := problem.First(err); wrong != nil && wrong.Kind == problem.Invalid {
		return a.resetPage(w, r, l, token, a.fault(r, wrong), http.StatusUnprocessableEntity)
	}
	if err != nil {
		return over(mail.Reset, err)
	}
	return a.passwordSet(w, r, l, a.words(r).Say("reset.done"), a.words(r).Say("reset.done-text"))
}

// passwordSet says so, and leads back to the sign-in that waits for it, if it still does
// and this is its browser. What strangers have guessed of the password does not keep this
// browser out from now on; of second factors it is a stranger until it has shown one.
func (a *API) passwordSet(w http.ResponseWriter, r *http.Request, l idp.Link, title, text string) error {
	if err := a.markDevice(w, r, l.ProjectID, l.SubscriberID, false); err != nil {
		return err
	}
	page := templates.Notice{ID: "password-set", Title: title, Text: []string{text}}
	button, err := a.wayBack(r, l)
	if err != nil {
		return err
	}
	if page.Button = button; button == nil {
		page.Text = append(page.Text, a.words(r).Say("reset.to-app"))
		page.Account = accountLink(a.words(r), l.ProjectID)
	}
	return a.write(w, r, page, templates.Options{})
}

// wayBack returns the way back to the sign-in that a link was asked for in, nil if there is
// none any more.
func (a *API) wayBack(r *http.Request, l idp.Link) (*templates.Link, error) {
	if l.Request == "" {
		return nil, nil
	}
	req, c, err := a.Resume(r.Context(), l.Request, a.cookies.FlowOf(r))
	if errors.Is(err, problem.NotFound) || errors.Is(err, problem.Forbidden) { // another browser began it
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	req.LoginHint = l.Email
	if err := a.Suspend(r.Context(), req); err != nil {
		return nil, err
	}
	return &templates.Link{Title: a.words(r).Say("login.submit", "App", a.appName(r, c, req)),
		URL: "/login?id=" + url.QueryEscape(req.ID)}, nil
}
