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

// An enrollment is a request whose login needs a second factor, and whose subscriber must set one
// up first.
type enrollment struct {
	req idp.AuthRequest
	c   idp.Client
	s   idp.Login
	sub fabric.Subscriber
}

// enrollmentOf returns the enrollment for a request. over reports that the person must sign in
// again, because the login has ended or is not recent. After a while, somebody else may be using
// the browser and could take over the account. If the login was silent (see [idp.Login]), the
// request in e then has prompt=login.
func (fp *factorPages) enrollmentOf(r *http.Request, req idp.AuthRequest, c idp.Client) (e enrollment,
	over bool, err error) {
	e.req, e.c = req, c
	l, err := fp.logins.live(r, e.c.ProjectID)
	if err != nil {
		return e, false, err
	}

	s, ok := l.answering(e.req)
	if ok && s.Silent && !e.req.Has("login") {
		// Without this prompt, the upstream provider could recognize the browser each time, without
		// asking the person to sign in.
		e.req.Prompt = append(e.req.Prompt, "login")
	}
	if !ok || !e.req.Satisfied(s, fp.Now()) || !fp.isRecent(s) || fp.Factors == nil {
		return e, true, nil
	}
	e.s = s

	page, err := fp.flow.factorPageFor(r, e.c, e.req, s)
	if err != nil {
		return e, false, err
	}
	if page != enrolPage {
		return e, false, errStale // the subscriber already has a factor, or no longer needs one
	}

	e.sub, err = fp.Subscribers.FindSubscriber(r.Context(), s.ProjectID, s.SubscriberID)
	presentationOf(r).account = e.sub.Claims.Locale
	return e, false, err
}

// flow returns the name of the setup. The setup must begin and end under the same name.
func (e enrollment) flow() string { return enrolFlow(e.s) }

func enrolFlow(s idp.Login) string { return "enrol " + s.ID }

// showEnrol serves GET /login/enrol?id=.
func (fp *factorPages) showEnrol(w http.ResponseWriter, r *http.Request) error {
	req, c, err := fp.resume(r, r.URL.Query().Get("id"))
	if err != nil {
		return err
	}
	e, over, err := fp.enrollmentOf(r, req, c)
	if err != nil {
		return err
	}
	if over {
		return fp.flow.suspend(w, r, c, e.req, "/login")
	}
	return fp.enrolPage(w, r, e, templates.Enrol{}, http.StatusOK)
}

func (fp *factorPages) enrolPage(w http.ResponseWriter, r *http.Request, e enrollment,
	page templates.Enrol, status int) error {
	var err error
	page.ID, page.App, page.Host = e.req.ID, fp.appName(r, e.c, e.req), e.req.Host()
	if page.Authenticator, err = fp.appForm(r, e.s, e.sub, page.Authenticator.Error); err != nil {
		return err
	}

	if fp.Factors.Passkeys() {
		options, err := fp.Factors.BeginPasskey(r.Context(), idp.OwnerOf(e.s.SubscriberID), e.flow(),
			nameOf(e.sub), e.sub.Title())
		if err != nil {
			return err
		}
		fault := page.Passkey.Error
		page.Passkey = fp.passkeyForm(options)
		page.Passkey.Error = fault
	}

	return fp.write(w, r, page, templates.Options{Status: status, FormAction: formAction(e.req.RedirectURI),
		Scripts: true})
}

// appForm begins or continues setting up an authenticator app, and returns the form for it.
func (pg *pages) appForm(r *http.Request, s idp.Login, sub fabric.Subscriber, fault string) (templates.AppForm, error) {
	project, err := pg.Fabric.Projects.Find(r.Context(), s.ProjectID)
	if err != nil {
		return templates.AppForm{}, err
	}
	begun, err := pg.Factors.BeginTOTP(r.Context(), idp.OwnerOf(s.SubscriberID), enrolFlow(s), project.Name,
		nameOf(sub))
	if err != nil {
		return templates.AppForm{}, err
	}
	return templates.NewAppForm(begun.Secret, begun.DataURL(), begun.URL, fault), nil
}

// nameOf returns the name that devices show for an account.
func nameOf(sub fabric.Subscriber) string {
	if sub.Email != "" {
		return sub.Email
	}
	return sub.Title()
}

// enrolApp serves POST /login/enrol, which contains the first code from an authenticator app.
func (fp *factorPages) enrolApp(w http.ResponseWriter, r *http.Request) error {
	return fp.enrol(w, r, func(e enrollment, form url.Values) ([]string, templates.Enrol, error) {
		err := fp.Factors.ConfirmTOTP(r.Context(), idp.OwnerOf(e.s.SubscriberID), true, e.flow(), form.Get("code"))
		fault, _ := fp.formFault(w, r, err)
		return []string{"otp"}, templates.Enrol{Authenticator: templates.AppForm{Error: fault}}, err
	})
}

// enrolPasskey serves POST /login/enrol/passkey, which contains a passkey created on the page.
func (fp *factorPages) enrolPasskey(w http.ResponseWriter, r *http.Request) error {
	return fp.enrol(w, r, func(e enrollment, form url.Values) ([]string, templates.Enrol, error) {
		key, err := fp.Factors.CreatePasskey(r.Context(), idp.OwnerOf(e.s.SubscriberID), true, e.flow(),
			form.Get("name"), []byte(form.Get("credential")))
		fault, _ := fp.formFault(w, r, err)
		return key.AMR(), templates.Enrol{Passkey: templates.Passkey{Error: fault}}, err
	})
}

// enrol sets up a factor and raises the login with it. If the subscriber has no recovery codes yet,
// it creates and shows them.
func (fp *factorPages) enrol(w http.ResponseWriter, r *http.Request,
	set func(enrollment, url.Values) (amr []string, faulty templates.Enrol, err error)) error {
	form, req, c, err := fp.requestForm(w, r)
	if err != nil {
		return err
	}
	e, over, err := fp.enrollmentOf(r, req, c)
	if err != nil {
		return err
	}
	if over {
		return fp.flow.suspend(w, r, c, e.req, "/login")
	}

	amr, faulty, err := set(e, form)
	if errors.Is(err, factor.ErrNotFirst) {
		return errStale
	}
	if fault, status := fp.formFault(w, r, err); fault != "" {
		return fp.enrolPage(w, r, e, faulty, status)
	}
	if err != nil {
		return err
	}

	// The factor has been set up. Raise the login with it.
	s, err := fp.Logins.Raise(r.Context(), e.s.ID, e.s.SubscriberID, amr)
	if err != nil {
		return err
	}

	codes, err := fp.Factors.FirstCodes(r.Context(), idp.OwnerOf(s.SubscriberID))
	if err != nil || codes == nil {
		if err != nil {
			return err
		}
		return fp.flow.enter(w, r, e.c, e.req, s)
	}

	// Show the new codes, once, before the request continues.
	if err := fp.logins.use(w, r, s); err != nil {
		return err
	}
	e.req.Chosen, e.req.Proof = s.ID, nil
	if err := fp.Requests.Suspend(r.Context(), e.req); err != nil {
		return err
	}
	page := templates.RecoveryCodes{ID: e.req.ID, App: fp.appName(r, e.c, e.req), Codes: codes}
	return fp.write(w, r, page, templates.Options{FormAction: formAction(e.req.RedirectURI), Scripts: true})
}

// continueLogin serves POST /login/continue, which follows the page with the recovery codes.
func (fp *factorPages) continueLogin(w http.ResponseWriter, r *http.Request) error {
	_, req, c, err := fp.requestForm(w, r)
	if err != nil {
		return err
	}
	l, err := fp.logins.live(r, c.ProjectID)
	if err != nil {
		return err
	}
	s, ok := l.answering(req)
	if !ok || !req.Satisfied(s, fp.Now()) {
		return errStale
	}
	return fp.flow.afterLogin(w, r, c, req, s)
}
