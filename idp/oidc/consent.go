package oidc

import (
	"fmt"
	"net/http"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
	"github.com/selvage/selvage/templates"
)

// meanings tells scopes in plain words.
var meanings = map[string]templates.Scope{
	"openid":         {Title: "Know who you are", Why: "An identifier that is always the same for you."},
	"profile":        {Title: "See your profile", Why: "Your names, job title, company, country and time zone."},
	"email":          {Title: "See your email address"},
	"offline_access": {Title: "Stay signed in", Why: "Also while you do not use it, until you sign out."},
	"Voice":          {Title: "Use voice", Why: "Calls, and the recordings of yours."},
	"Messaging":      {Title: "Use messaging"},
	"Video":          {Title: "Use video"},
	"Fax":            {Title: "Use fax"},
}

// showConsent serves GET /consent?id=.
func (a *API) showConsent(w http.ResponseWriter, r *http.Request) error {
	req, c, s, err := a.consentFor(r, r.URL.Query().Get("id"))
	if err != nil {
		return err
	}
	sub, err := a.Subscribers.FindSubscriber(r.Context(), s.ProjectID, s.SubscriberID)
	if err != nil {
		return fmt.Errorf("finding subscriber: %w", err)
	}
	page := templates.Consent{ID: req.ID, App: appName(c, req), Host: req.Host(), Email: sub.Email, Login: session.Digest(s.ID)}
	for _, scope := range req.Scope {
		meaning, ok := meanings[scope]
		if !ok {
			meaning = templates.Scope{Title: "Use " + scope}
		}
		page.Scopes = append(page.Scopes, meaning)
	}
	return templates.Write(w, page, templates.Options{FormAction: formAction(req.RedirectURI)})
}

// answerConsent serves POST /consent: the form of the consent page.
func (a *API) answerConsent(w http.ResponseWriter, r *http.Request) error {
	form, err := postForm(w, r)
	if err != nil {
		return err
	}
	req, c, s, err := a.consentFor(r, form.Get("id"))
	if err != nil {
		return err
	}
	if form.Get("login") != session.Digest(s.ID) {
		return errStale // somebody else has signed in since the page was shown
	}
	switch form.Get("answer") {
	case "allow":
		if err := a.Consent(r.Context(), c, s.SubscriberID, req.Scope); err != nil {
			return err
		}
		return a.answer(w, r, req, s)
	case "deny":
		if err := a.drop(r, req); err != nil {
			return err
		}
		denied := &problem.Error{Kind: problem.Forbidden, Code: "access_denied", Message: "the subscriber denied the access"}
		return a.respondError(w, r, req.RedirectURI, req.State, denied)
	}
	return badRequest("The answer is neither allow nor deny.")
}

// consentFor finds a suspended request and the login that answers for it.
func (a *API) consentFor(r *http.Request, id string) (idp.AuthRequest, idp.Client, idp.Session, error) {
	req, c, err := a.resume(r, id)
	if err != nil {
		return req, c, idp.Session{}, err
	}
	s, ok, err := a.currentLogin(r, c.ProjectID)
	if err == nil && (!ok || !req.Satisfied(s, a.Now())) {
		err = errStale
	}
	return req, c, s, err
}
