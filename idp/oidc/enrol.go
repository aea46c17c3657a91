package oidc

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/templates"
)

// An enrolment is a request whose login has to prove more than its subscriber can: it
// sets a factor up first.
type enrolment struct {
	req idp.AuthRequest
	c   idp.Client
	s   idp.Session
	sub fabric.Subscriber
}

// enrolmentOf returns the enrolment of a request. over says that the login
// begins anew: it is not there any more, or it is old, and whoever holds the browser now
// must not become part of the account.
func (a *API) enrolmentOf(r *http.Request, req idp.AuthRequest, c idp.Client) (e enrolment, over bool, err error) {
	e.req, e.c = req, c
	l, err := a.loginsOf(r, e.c.ProjectID)
	if err != nil {
		return e, false, err
	}
	s, ok := l.answering(e.req)
	if !ok || !e.req.Satisfied(s, a.Now()) || !a.lately(s) || a.Factors == nil {
		return e, true, nil
	}
	e.s = s
	page, err := a.lacking(r, e.c, e.req, s)
	if err != nil {
		return e, false, err
	}
	if page != enrolPage {
		return e, false, errStale // there is a factor now, or none is needed
	}
	e.sub, err = a.Subscribers.FindSubscriber(r.Context(), s.ProjectID, s.SubscriberID)
	mannerOf(r).account = e.sub.Claims.Locale
	return e, false, err
}

// flow names what a set-up must end in.
func (e enrolment) flow() string { return enrolFlow(e.s) }

func enrolFlow(s idp.Session) string { return "enrol " + s.ID }

// showEnrol serves GET /login/enrol?id=.
func (a *API) showEnrol(w http.ResponseWriter, r *http.Request) error {
	req, c, err := a.resume(r, r.URL.Query().Get("id"))
	if err != nil {
		return err
	}
	e, over, err := a.enrolmentOf(r, req, c)
	if err != nil {
		return err
	}
	if over {
		return beginAnew(w, e.req)
	}
	return a.enrolPage(w, r, e, templates.Enrol{}, http.StatusOK)
}

func (a *API) enrolPage(w http.ResponseWriter, r *http.Request, e enrolment, page templates.Enrol, status int) error {
	var err error
	page.ID, page.App, page.Host = e.req.ID, a.appName(r, e.c, e.req), e.req.Host()
	if page.Authenticator, err = a.appForm(r, e.s, e.sub, page.Authenticator.Error); err != nil {
		return err
	}
	if a.Factors.Passkeys() {
		options, err := a.Factors.BeginPasskey(r.Context(), idp.OwnerOf(e.s.SubscriberID), e.flow(),
			nameOf(e.sub), e.sub.Title())
		if err != nil {
			return err
		}
		fault := page.Passkey.Error
		page.Passkey = a.passkeyForm(options)
		page.Passkey.Error = fault
	}
	return a.write(w, r, page, templates.Options{Status: status, FormAction: formAction(e.req.RedirectURI),
		Scripts: true})
}

// appForm begins the set-up of an authenticator app, or goes on with it.
func (a *API) appForm(r *http.Request, s idp.Session, sub fabric.Subscriber, fault string) (templates.AppForm, error) {
	project, err := a.Fabric.FindProject(r.Context(), s.ProjectID)
	if err != nil {
		return templates.AppForm{}, err
	}
	begun, err := a.Factors.BeginTOTP(r.Context(), idp.OwnerOf(s.SubscriberID), enrolFlow(s), project.Name,
		nameOf(sub))
	if err != nil {
		return templates.AppForm{}, err
	}
	return templates.NewAppForm(begun.Secret, begun.DataURL(), begun.URL, fault), nil
}

// nameOf is what devices call an account.
func nameOf(sub fabric.Subscriber) string {
	if sub.Email != "" {
		return sub.Email
	}
	return sub.Title()
}

// enrolApp serves POST /login/enrol: the first code of an authenticator app.
func (a *API) enrolApp(w http.ResponseWriter, r *http.Request) error {
	return a.enrol(w, r, func(e enrolment, form url.Values) ([]string, templates.Enrol, error) {
		err := a.Factors.ConfirmTOTP(r.Context(), idp.OwnerOf(e.s.SubscriberID), true, e.flow(), form.Get("code"))
		fault, _ := a.toldFault(w, r, err)
		return []string{"otp"}, templates.Enrol{Authenticator: templates.AppForm{Error: fault}}, err
	})
}

// enrolPasskey serves POST /login/enrol/passkey: a passkey that was made on the page.
func (a *API) enrolPasskey(w http.ResponseWriter, r *http.Request) error {
	return a.enrol(w, r, func(e enrolment, form url.Values) ([]string, templates.Enrol, error) {
		key, err := a.Factors.CreatePasskey(r.Context(), idp.OwnerOf(e.s.SubscriberID), true, e.flow(),
			form.Get("name"), []byte(form.Get("credential")))
		fault, _ := a.toldFault(w, r, err)
		return key.AMR(), templates.Enrol{Passkey: templates.Passkey{Error: fault}}, err
	})
}

// enrol sets a factor up, raises the login by it, and shows recovery codes where there
// are none yet.
func (a *API) enrol(w http.ResponseWriter, r *http.Request, set func(enrolment, url.Values) (amr []string, faulty templates.Enrol, err error)) error {
	form, req, c, err := a.flowForm(w, r)
	if err != nil {
		return err
	}
	e, over, err := a.enrolmentOf(r, req, c)
	if err != nil {
		return err
	}
	if over {
		return beginAnew(w, e.req)
	}
	amr, faulty, err := set(e, form)
	if errors.Is(err, factor.ErrNotFirst) {
		return errStale
	}
	if fault, status := a.toldFault(w, r, err); fault != "" {
		return a.enrolPage(w, r, e, faulty, status)
	}
	if err != nil {
		return err
	}
	s, err := a.Raise(r.Context(), e.s.ID, e.s.SubscriberID, amr)
	if err != nil {
		return err
	}
	codes, err := a.Factors.FirstCodes(r.Context(), idp.OwnerOf(s.SubscriberID))
	if err != nil || codes == nil {
		if err == nil {
			err = a.entered(w, r, e.c, e.req, s)
		}
		return err
	}
	if err := a.setLogin(w, r, s); err != nil {
		return err
	}
	e.req.Chosen, e.req.Proof = s.ID, nil
	if err := a.Suspend(r.Context(), e.req); err != nil {
		return err
	}
	page := templates.RecoveryCodes{ID: e.req.ID, App: a.appName(r, e.c, e.req), Codes: codes}
	return a.write(w, r, page, templates.Options{FormAction: formAction(e.req.RedirectURI), Scripts: true})
}

// goOn serves POST /login/continue: the codes were seen.
func (a *API) goOn(w http.ResponseWriter, r *http.Request) error {
	_, req, c, err := a.flowForm(w, r)
	if err != nil {
		return err
	}
	l, err := a.loginsOf(r, c.ProjectID)
	if err != nil {
		return err
	}
	s, ok := l.answering(req)
	if !ok || !req.Satisfied(s, a.Now()) {
		return errStale
	}
	return a.afterLogin(w, r, c, req, s)
}
