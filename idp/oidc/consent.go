package oidc

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/templates"
)

// consentPages serves the pages that ask people whether an app may have access.
type consentPages struct {
	*pages
	flow   *flow
	logins *browserLogins
}

// explained lists the rights that are shown with an explanation.
var explained = []string{"openid", "profile", "offline_access", "Voice", idp.FabricAccess}

// describedRights lists the rights that have their own text.
var describedRights = append([]string{"email", "address", "phone", "Messaging", "Video", "Fax"}, explained...)

// meaningOf describes a right in plain words. Most rights are scopes.
func meaningOf(say *words.Words, right string) templates.Scope {
	switch {
	case slices.Contains(explained, right):
		return templates.Scope{Title: say.Say("scope." + right), Why: say.Say("scope." + right + ".why")}
	case slices.Contains(describedRights, right):
		return templates.Scope{Title: say.Say("scope." + right)}
	case strings.Contains(right, ":"): // a resource
		return templates.Scope{Title: say.Say("scope-at", "Where", right)}
	}
	return templates.Scope{Title: say.Say("scope-of", "Name", right)}
}

// showConsent serves GET /consent?id=.
func (cp *consentPages) showConsent(w http.ResponseWriter, r *http.Request) error {
	req, c, err := cp.resume(r, r.URL.Query().Get("id"))
	if err != nil {
		return err
	}
	s, isOver, err := cp.consentingLogin(r, c, req)
	if err != nil {
		return err
	}
	if isOver {
		return backToLogin(w, req)
	}

	sub, err := cp.Subscribers.FindSubscriber(r.Context(), s.ProjectID, s.SubscriberID)
	if err != nil {
		return fmt.Errorf("finding subscriber: %w", err)
	}
	presentationOf(r).account = sub.Claims.Locale

	page := templates.Consent{
		ID:    req.ID,
		App:   cp.appName(r, c, req),
		Host:  req.Host(),
		Email: sub.Email,
		Login: session.Digest(s.ID),
	}
	for _, scope := range c.Rights(req) {
		page.Scopes = append(page.Scopes, meaningOf(cp.words(r), scope))
	}
	if req.Device != "" {
		return cp.devicePage(w, r, req, page)
	}
	return cp.write(w, r, page, templates.Options{FormAction: formAction(req.RedirectURI)})
}

// answerConsent serves POST /consent, the form of the consent page.
func (cp *consentPages) answerConsent(w http.ResponseWriter, r *http.Request) error {
	form, req, c, err := cp.requestForm(w, r)
	if err != nil {
		return err
	}
	s, isOver, err := cp.consentingLogin(r, c, req)
	if err != nil {
		return err
	}
	if isOver {
		return backToLogin(w, req)
	}

	if form.Get("login") != session.Digest(s.ID) {
		return errStale // another person has signed in since the page was shown
	}

	switch form.Get("answer") {
	case "allow":
		if err := cp.Consents.Add(r.Context(), c, s.SubscriberID, c.Rights(req)); err != nil {
			return err
		}
		return cp.flow.answer(w, r, c, req, s)
	case "deny":
		if err := cp.Consents.Deny(r.Context(), c, s); err != nil {
			return err
		}
		if req.Device != "" {
			return cp.flow.denyDevice(w, r, c, req)
		}
		if err := cp.flow.drop(w, r, req); err != nil {
			return err
		}
		denied := &problem.Error{
			Kind:    problem.Forbidden,
			Code:    "access_denied",
			Message: "the subscriber denied access",
		}
		return cp.flow.respondError(w, r, c, req, denied)
	}
	return badRequest("error.answer")
}

// consentingLogin returns the login that may consent to an authorization request. isOver is true if
// the person must sign in again, for example because the login has ended, or has become too old, since
// the page was shown. If the login still needs a second factor, consentingLogin returns an error, because the
// consent page is shown only after that factor.
func (cp *consentPages) consentingLogin(r *http.Request, c idp.Client,
	req idp.AuthRequest) (login idp.Login, isOver bool, err error) {
	live, err := cp.logins.live(r, c.ProjectID)
	if err != nil {
		return idp.Login{}, false, err
	}
	login, ok := live.answering(req)
	if !ok { // the login has ended since the page was shown
		return idp.Login{}, true, nil
	}
	if !req.Means(login) {
		return idp.Login{}, false, errStale
	}
	if !req.Satisfied(login, cp.Now()) {
		return idp.Login{}, true, nil
	}

	path, err := cp.flow.factorPathFor(r, c, req, login)
	if err != nil {
		return idp.Login{}, false, err
	}
	if path != "" {
		return idp.Login{}, false, errStale
	}
	return login, req.CheckClass(login) != nil, nil
}
