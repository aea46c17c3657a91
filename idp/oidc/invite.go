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
	text := project.Name + " has made an account for you, with the address " + l.Email + ". Choose a password, and you can sign in to the apps of " + project.Name + "."
	if l.Inviter != "" {
		text = l.Inviter + " invites you to " + project.Name + ", with the address " + l.Email + ". Choose a password, and you can sign in to its apps."
	}
	return a.write(w, r, templates.NewPassword{
		Title: "You are invited to " + project.Name, Text: text, Action: "/invite", Token: token, Email: l.Email, Rule: a.passwordRule(), Error: wrong, Button: "Accept the invitation",
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
	if wrong := problem.First(err); wrong != nil && wrong.Kind == problem.Invalid {
		return a.invitationPage(w, r, l, token, sentence(wrong.Message), http.StatusUnprocessableEntity)
	}
	if err != nil {
		return over(mail.Invitation, err)
	}
	return a.passwordSet(w, r, l, "Your account is ready", "Sign in to the app with "+l.Email+" and the password that you have chosen.")
}
