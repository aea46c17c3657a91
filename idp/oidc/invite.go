package oidc

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/templates"
)

// showInvitation serves GET /invite?token=. It does not use the link up.
func (lp *linkPages) showInvitation(w http.ResponseWriter, r *http.Request) error {
	token := r.URL.Query().Get("token")
	l, err := lp.find(r, mail.Invitation, token)
	if err != nil {
		return err
	}
	return lp.invitationPage(w, r, l, token, "", http.StatusOK)
}

func (lp *linkPages) invitationPage(w http.ResponseWriter, r *http.Request, l idp.Link, token,
	wrong string, status int) error {
	project, err := lp.Letters.LinkProject(r.Context(), l)
	if err != nil {
		return convertMissing(mail.Invitation, err)
	}

	say := lp.words(r)
	text := say.Say("invite.text", "Project", project.Name, "Email", l.Account())
	if l.Inviter != "" {
		text = say.Say("invite.text-by", "Inviter", l.Inviter, "Project", project.Name, "Email", l.Account())
	}
	return lp.write(w, r, templates.NewPassword{
		Title:  say.Say("invite.title", "Project", project.Name),
		Text:   text,
		Action: formAt(r, "/invite"),
		Token:  token,
		Email:  l.Account(),
		Rule:   lp.passwordRule(r),
		Error:  wrong,
		Button: say.Say("invite.submit"),
	}, templates.Options{Status: status})
}

// acceptInvitation serves POST /invite, the form on the page of showInvitation. If the password is
// accepted, the link is used up.
func (lp *linkPages) acceptInvitation(w http.ResponseWriter, r *http.Request) error {
	form, err := postForm(w, r)
	if err != nil {
		return err
	}
	token := form.Get("token")
	l, err := lp.Accounts.ResetPassword(r.Context(), mail.Invitation, token, form.Get("password"))
	followed(r, l)
	if wrong := problem.First(err); wrong != nil && wrong.Kind == problem.Invalid {
		return lp.invitationPage(w, r, l, token, lp.fault(r, wrong), http.StatusUnprocessableEntity)
	}
	if err != nil {
		return convertMissing(mail.Invitation, err)
	}

	signedIn, err := lp.signInInvited(w, r, l)
	if err != nil {
		return err
	}
	accepted := url.Values{"project": {l.ProjectID}}
	if !signedIn {
		if err := lp.logins.markDevice(w, r, l.ProjectID, l.SubscriberID, false); err != nil { // as after a reset
			return err
		}
		accepted.Set("sign-in", "1")
	}
	if asked := r.URL.Query().Get("ui_locales"); asked != "" && len(asked) <= maxLocales {
		accepted.Set("ui_locales", asked)
	}
	seeOther(w, "/invite/accepted?"+accepted.Encode())
	return nil
}

// showAccepted serves GET /invite/accepted?project=, the page after an accepted invitation. It
// names the person whose login this browser has. The parameter sign-in means that the invitation
// has signed in nobody. A login of this browser may then be another person's, so the page names
// nobody.
func (lp *linkPages) showAccepted(w http.ResponseWriter, r *http.Request) error {
	l := idp.Link{ProjectID: r.URL.Query().Get("project")}
	if _, err := lp.Letters.LinkProject(r.Context(), l); err != nil {
		return convertMissing(mail.Invitation, err)
	}
	followed(r, l)
	live, err := lp.logins.live(r, l.ProjectID)
	if err != nil {
		return err
	}

	say := lp.words(r)
	page := templates.Notice{
		ID:      "password-set",
		Title:   say.Say("invite.done"),
		Text:    []string{say.Say("invite.done-text")},
		Account: accountLink(say, l.ProjectID),
	}
	if live.inUse && !r.URL.Query().Has("sign-in") {
		sub, err := lp.Subscribers.FindSubscriber(r.Context(), l.ProjectID, live.all[0].SubscriberID)
		if err != nil {
			return convertMissing(mail.Invitation, err)
		}
		page.Text = []string{say.Say("invite.signed-in", "Account", sub.Title())}
		page.Button = &templates.Link{Title: say.Say("invite.continue"), URL: accountURL(l.ProjectID)}
		page.Account = nil
	}
	return lp.write(w, r, page, templates.Options{})
}

// signInInvited signs in the subscriber who has just accepted an invitation in this browser. If a
// second factor is needed, or the account has changed in the meantime, it returns false, and the
// subscriber must sign in as usual.
func (lp *linkPages) signInInvited(w http.ResponseWriter, r *http.Request, l idp.Link) (bool, error) {
	project, err := lp.Letters.LinkProject(r.Context(), l)
	if err != nil || project.RequireFactor {
		return false, err
	}
	factors, err := lp.Logins.FactorsOf(r.Context(), l.SubscriberID)
	if err != nil || factors.Any() {
		return false, err
	}
	sub, err := lp.Subscribers.FindSubscriber(r.Context(), l.ProjectID, l.SubscriberID)
	if err != nil || sub.Disabled {
		return false, problem.IgnoreNotFound(err)
	}

	s, err := lp.Logins.LogInRegistered(r.Context(), sub, lp.visitor(r))
	if errors.Is(err, problem.Unauthenticated) { // the account was changed after it was read
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, lp.logins.use(w, r, s)
}
