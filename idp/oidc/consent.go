package oidc

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
	"github.com/selvage/selvage/templates"
)

// meanings tells scopes in plain words.
var meanings = map[string]templates.Scope{
	"openid":         {Title: "Know who you are", Why: "An identifier that is always the same for you."},
	"profile":        {Title: "See your profile", Why: "Your names, picture, birthday, language and time zone, as far as you gave them."},
	"email":          {Title: "See your email address"},
	"address":        {Title: "See your postal address"},
	"phone":          {Title: "See your phone number"},
	"offline_access": {Title: "Stay signed in", Why: "Also while you do not use it, until you sign out."},
	"Voice":          {Title: "Use voice", Why: "Calls, and the recordings of yours."},
	"Messaging":      {Title: "Use messaging"},
	"Video":          {Title: "Use video"},
	"Fax":            {Title: "Use fax"},
}

// meaningOf tells a right in plain words.
func meaningOf(scope string) templates.Scope {
	meaning, ok := meanings[scope]
	switch {
	case ok:
		return meaning
	case strings.Contains(scope, ":"): // a resource
		return templates.Scope{Title: "Act for you at " + scope}
	}
	return templates.Scope{Title: "Use " + scope}
}

// showConsent serves GET /consent?id=.
func (a *API) showConsent(w http.ResponseWriter, r *http.Request) error {
	req, c, err := a.resume(r, r.URL.Query().Get("id"))
	if err != nil {
		return err
	}
	s, err := a.consenting(r, c, req)
	if err != nil {
		return err
	}
	sub, err := a.Subscribers.FindSubscriber(r.Context(), s.ProjectID, s.SubscriberID)
	if err != nil {
		return fmt.Errorf("finding subscriber: %w", err)
	}
	page := templates.Consent{ID: req.ID, App: appName(c, req), Host: req.Host(), Email: sub.Email, Login: session.Digest(s.ID)}
	for _, scope := range req.Rights() {
		page.Scopes = append(page.Scopes, meaningOf(scope))
	}
	if req.Device != "" {
		return a.devicePage(w, r, req, page)
	}
	return a.write(w, r, page, templates.Options{FormAction: formAction(req.RedirectURI)})
}

// answerConsent serves POST /consent: the form of the consent page.
func (a *API) answerConsent(w http.ResponseWriter, r *http.Request) error {
	form, req, c, err := a.flowForm(w, r)
	if err != nil {
		return err
	}
	s, err := a.consenting(r, c, req)
	if err != nil {
		return err
	}
	if form.Get("login") != session.Digest(s.ID) {
		return errStale // somebody else has signed in since the page was shown
	}
	switch form.Get("answer") {
	case "allow":
		if err := a.Consent(r.Context(), c, s.SubscriberID, req.Rights()); err != nil {
			return err
		}
		return a.answer(w, r, c, req, s)
	case "deny":
		if err := a.Deny(r.Context(), c, s); err != nil {
			return err
		}
		if req.Device != "" {
			return a.denyDevice(w, r, c, req)
		}
		if err := a.drop(r, req); err != nil {
			return err
		}
		denied := &problem.Error{Kind: problem.Forbidden, Code: "access_denied", Message: "the subscriber denied the access"}
		return a.respondError(w, r, c, req, denied)
	}
	return badRequest("The answer is neither allow nor deny.")
}

// consenting gives the login that answers for a suspended request.
func (a *API) consenting(r *http.Request, c idp.Client, req idp.AuthRequest) (idp.Session, error) {
	l, err := a.loginsOf(r, c.ProjectID)
	s, ok := l.answering(req)
	if err == nil && (!ok || !req.Satisfied(s, a.Now())) {
		err = errStale
	}
	if err != nil {
		return s, err
	}
	page, err := a.lacking(r, c, req, s)
	if err == nil && page != "" {
		err = errStale // the page is not shown before two factors are, where they are needed
	}
	return s, err
}
