package oidc

import (
	"net/http"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/templates"
)

// showInvitation serves GET /invite?token=. It changes nothing.
func (a *API) showInvitation(w http.ResponseWriter, r *http.Request) error {
	token := r.URL.Query().Get("token")
	l, err := a.link(r, mail.Invitation, token)
	if err != nil {
		return err
	}
	return a.invitationPage(w, r, l, token, "", http.StatusOK)
}

func (a *API) invitationPage(w http.ResponseWriter, r *http.Request, l idp.Link, token, wrong string, status int) error {
	project, err := a.Linked(r.Context(), l)
	if err != nil {
		return over(mail.Invitation, err)
	}
	text := a.words(r).Say("invite.text", "Project", project.Name, "Email", l.Email)
	if l.Inviter != "" {
		text = a.words(r).Say("invite.text-by", "Inviter", l.Inviter, "Project", project.Name, "Email", l.Email)
	}
	return a.write(w, r, templates.NewPassword{
		Title: a.words(r).Say("invite.title", "Project", project.Name), Text: text,
		Action: formAt(r, "/invite"), Token: token, Email: l.Email, Rule: a.passwordRule(r), Error: wrong,
		Button: a.words(r).Say("invite.submit"),
	}, templates.Options{Status: status})
}

// acceptInvitation serves POST /invite: the form of that page, which uses the link up.
func (a *API) acceptInvitation(w http.ResponseWriter, r *http.Request) error {
	form, err := postForm(w, r)
	if err != nil {
		return err
	}
	token := form.Get("token")
	l, err := a.ResetPassword(r.Context(), mail.Invitation, token, form.Get("password"))
	followed(r, l)
	if wrong := problem.First(err); wrong != nil && wrong.Kind == problem.Invalid {
		return a.invitationPage(w, r, l, token, a.fault(r, wrong), http.StatusUnprocessableEntity)
	}
	if err != nil {
		return over(mail.Invitation, err)
	}
	return a.passwordSet(w, r, l, a.words(r).Say("invite.done"), a.words(r).Say("invite.done-text", "Email", l.Email))
}
