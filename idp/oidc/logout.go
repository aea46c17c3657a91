package oidc

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/templates"
)

// errLogout is the answer to a logout request whose parts do not fit together.
var errLogout = &shown{http.StatusBadRequest, templates.Error{
	Title:  "The app cannot sign you out here",
	Text:   "The logout request does not come from an app that is known here, or its redirect address is not registered.",
	Advice: "If you make this app: id_token_hint must be an ID token of this provider for your client, and post_logout_redirect_uri must be, character for character, one of those registered.",
}}

// A logoutRequest is a request of RP-Initiated Logout, section 2, proven as far
// as it goes.
type logoutRequest struct {
	client     idp.Client // zero where none is named
	hint       idp.IDHint // zero where there is none
	redirectTo string     // a registered URI, or ""
	state      string
}

// endSessionByPost serves POST /oauth/logout. It comes from the client's site,
// without our cookies (they are SameSite=Lax), so it is sent round once more as a
// GET, which brings them.
func (a *API) endSessionByPost(w http.ResponseWriter, r *http.Request) error {
	form, err := postForm(w, r)
	if err != nil {
		return err
	}
	only := make(url.Values)
	for _, name := range []string{"id_token_hint", "client_id", "post_logout_redirect_uri", "state"} {
		if form.Has(name) {
			only.Set(name, form.Get(name))
		}
	}
	seeOther(w, r.URL.Path+"?"+only.Encode())
	return nil
}

// endSession serves GET /oauth/logout.
func (a *API) endSession(w http.ResponseWriter, r *http.Request) error {
	req, err := a.parseLogout(r, r.URL.Query())
	if err != nil {
		return err
	}
	sid, sure, err := a.sessionToEnd(r, req)
	if err != nil {
		return err
	}
	if !sure {
		return a.logoutPage(w, req)
	}
	// The browser may have signed in anew since the hint was given: the login of then
	// lives on without it, and so do its tokens.
	for _, sid := range []string{sid, req.hint.SessionID} {
		if sid == "" {
			continue
		}
		if err := a.EndSession(r.Context(), sid); err != nil {
			return err
		}
	}
	return a.loggedOut(w, r, req)
}

func (a *API) parseLogout(r *http.Request, v url.Values) (req logoutRequest, err error) {
	if checkParams(v) != nil {
		return req, errLogout
	}
	clientID := v.Get("client_id")
	if raw := v.Get("id_token_hint"); raw != "" {
		hint, ok := a.OpenIDHint(raw)
		if !ok || clientID != "" && clientID != hint.ClientID {
			return req, errLogout
		}
		req.hint, clientID = hint, hint.ClientID
	}
	if clientID != "" {
		if req.client, err = a.FindClient(r.Context(), clientID); errors.Is(err, problem.NotFound) {
			return req, errLogout
		} else if err != nil {
			return req, err
		}
		req.hint.Subject = a.SubscriberOf(req.client, req.hint.Subject)
	}
	req.redirectTo, req.state = v.Get("post_logout_redirect_uri"), v.Get("state")
	if req.redirectTo != "" && !req.client.AllowsLogoutTo(req.redirectTo) {
		return req, errLogout
	}
	return req, nil
}

// sessionToEnd finds the login of the browser that a request means, beside the one
// that the hint is of. sure is false where the person must be asked first: without a hint, or where the browser is signed in
// as somebody else than the hint says.
func (a *API) sessionToEnd(r *http.Request, req logoutRequest) (sid string, sure bool, err error) {
	b, err := a.browsers.Open(r)
	if err != nil {
		return "", false, err
	}
	if req.hint.Subject == "" {
		return "", len(b.Values()) == 0, nil // nobody is signed in: nothing to ask
	}
	l, err := a.loginsOf(r, req.client.ProjectID)
	if err != nil {
		return "", false, err
	}
	for _, s := range l.all {
		if s.SubscriberID == req.hint.Subject {
			return s.ID, true, nil
		}
	}
	return "", !l.inUse, nil
}

func (a *API) logoutPage(w http.ResponseWriter, req logoutRequest) error {
	fields := make(map[string]string)
	for name, value := range map[string]string{"client_id": req.client.ID, "post_logout_redirect_uri": req.redirectTo, "state": req.state} {
		if value != "" {
			fields[name] = value
		}
	}
	o := templates.Options{}
	if req.redirectTo != "" {
		o.FormAction = formAction(req.redirectTo)
	}
	return templates.Write(w, templates.Logout{App: req.client.Name, Fields: fields}, o)
}

// showLogout serves GET /logout: the page to sign out without an app.
func (a *API) showLogout(w http.ResponseWriter, _ *http.Request) error {
	return a.logoutPage(w, logoutRequest{})
}

// logOut serves POST /logout: the answer to the confirmation page. It ends the
// browser's logins in the client's project, or all of them where none is named.
func (a *API) logOut(w http.ResponseWriter, r *http.Request) error {
	form, err := postForm(w, r)
	if err != nil {
		return err
	}
	form.Del("id_token_hint") // the person has answered; a hint has no say here
	req, err := a.parseLogout(r, form)
	if err != nil {
		return err
	}
	b, err := a.browsers.Open(r)
	if err != nil {
		return err
	}
	for projectID, text := range b.Values() {
		for _, sid := range idp.ParseLogins(text) {
			if sid == "" || req.client.ID != "" && req.client.ProjectID != projectID {
				continue
			}
			if err := a.EndSession(r.Context(), sid); err != nil {
				return err
			}
		}
	}
	return a.loggedOut(w, r, req)
}

// loggedOut takes dead logins out of the browser's cookie and leads back to the
// app, or says that it is done.
func (a *API) loggedOut(w http.ResponseWriter, r *http.Request, req logoutRequest) error {
	b, err := a.browsers.Open(r)
	if err != nil {
		return err
	}
	a.tidy(r, b)
	if len(b.Values()) == 0 {
		err = b.Forget(w, r)
	} else {
		err = b.Renew(w, r)
	}
	if err != nil {
		return err
	}
	if req.redirectTo == "" {
		return templates.Write(w, templates.LoggedOut{App: req.client.Name}, templates.Options{})
	}
	to := req.redirectTo
	if req.state != "" {
		sep := "?"
		if strings.Contains(to, "?") {
			sep = "&"
		}
		to += sep + url.Values{"state": {req.state}}.Encode()
	}
	seeOther(w, to)
	return nil
}
