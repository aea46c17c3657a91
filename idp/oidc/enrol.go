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
	req    idp.AuthRequest
	client idp.Client
	login  idp.Login
	sub    fabric.Subscriber

	// over is set if the person must sign in again, because the login has ended or is not recent.
	// After a while, somebody else may be using the browser and could take over the account.
	over bool
}

// enrollmentOf returns the enrollment for a request. If the enrollment is over, sub is not set.
func (fp *factorPages) enrollmentOf(r *http.Request, req idp.AuthRequest, client idp.Client) (enrollment, error) {
	live, err := fp.logins.live(r, client.ProjectID)
	if err != nil {
		return enrollment{}, err
	}

	login, ok := live.answering(req)
	e := enrollment{req: req, client: client, login: login}
	if !ok || !req.Satisfied(login, fp.Now()) || !fp.isRecent(login) || fp.Factors == nil {
		e.over = true
		return e, nil
	}

	path, err := fp.flow.factorPathFor(r, client, req, login)
	if err != nil {
		return enrollment{}, err
	}
	if path != enrolPath {
		return enrollment{}, errStale // the subscriber already has a factor, or no longer needs one
	}

	e.sub, err = fp.Subscribers.FindSubscriber(r.Context(), login.ProjectID, login.SubscriberID)
	if err != nil {
		return enrollment{}, err
	}
	presentationOf(r).account = e.sub.Claims.Locale
	return e, nil
}

// logInAgain redirects to the login page. The request then continues with the new login.
func (fp *factorPages) logInAgain(w http.ResponseWriter, r *http.Request, e enrollment) error {
	if e.login.Silent && !e.req.Has("login") {
		// Without this prompt, the upstream provider could recognize the browser each time, without
		// asking the person to sign in.
		e.req.Prompt = append(e.req.Prompt, "login")
	}
	return fp.flow.suspend(w, r, e.client, e.req, "/login")
}

// owner returns the owner of the new factor.
func (e enrollment) owner() factor.Owner { return idp.OwnerOf(e.login.SubscriberID) }

// enrolFlow returns the name of the setup that a login begins. The setup must begin and end under
// the same name.
func enrolFlow(login idp.Login) string { return "enrol " + login.ID }

// showEnrol serves GET /login/enrol?id=.
func (fp *factorPages) showEnrol(w http.ResponseWriter, r *http.Request) error {
	req, client, err := fp.resume(r, r.URL.Query().Get("id"))
	if err != nil {
		return err
	}
	e, err := fp.enrollmentOf(r, req, client)
	if err != nil {
		return err
	}
	if e.over {
		return fp.logInAgain(w, r, e)
	}
	return fp.enrolPage(w, r, e, enrolFaults{}, http.StatusOK)
}

// enrolFaults are the messages about the errors in the two forms of the enrollment page.
type enrolFaults struct{ app, passkey string }

func (fp *factorPages) enrolPage(w http.ResponseWriter, r *http.Request, e enrollment, faults enrolFaults,
	status int) error {
	app, err := fp.appForm(r, e.login, e.sub, faults.app)
	if err != nil {
		return err
	}
	page := templates.Enrol{
		ID:            e.req.ID,
		App:           fp.appName(r, e.client, e.req),
		Host:          e.req.Host(),
		Authenticator: app,
	}

	if fp.Factors.Passkeys() {
		options, err := fp.Factors.BeginPasskey(r.Context(), e.owner(), enrolFlow(e.login),
			nameOf(e.sub), e.sub.Title())
		if err != nil {
			return err
		}
		page.Passkey = fp.passkeyForm(options)
		page.Passkey.Error = faults.passkey
	}

	return fp.write(w, r, page, templates.Options{
		Status:     status,
		FormAction: formAction(e.req.RedirectURI),
		Scripts:    true,
	})
}

// appForm begins or continues setting up an authenticator app, and returns the form for it.
func (pg *pages) appForm(r *http.Request, login idp.Login, sub fabric.Subscriber, fault string) (templates.AppForm,
	error) {
	project, err := pg.Fabric.Projects.Find(r.Context(), login.ProjectID)
	if err != nil {
		return templates.AppForm{}, err
	}
	owner := idp.OwnerOf(login.SubscriberID)
	begun, err := pg.Factors.BeginTOTP(r.Context(), owner, enrolFlow(login), project.Name, nameOf(sub))
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
	confirm := func(e enrollment, form url.Values) ([]string, error) {
		err := fp.Factors.ConfirmTOTP(r.Context(), e.owner(), true, enrolFlow(e.login), form.Get("code"))
		return []string{"otp"}, err
	}
	return fp.enrol(w, r, confirm, func(fault string) enrolFaults { return enrolFaults{app: fault} })
}

// enrolPasskey serves POST /login/enrol/passkey, which contains a passkey created on the page.
func (fp *factorPages) enrolPasskey(w http.ResponseWriter, r *http.Request) error {
	create := func(e enrollment, form url.Values) ([]string, error) {
		key, err := fp.Factors.CreatePasskey(r.Context(), e.owner(), true, enrolFlow(e.login),
			form.Get("name"), []byte(form.Get("credential")))
		if err != nil {
			return nil, err
		}
		return key.AMR(), nil
	}
	return fp.enrol(w, r, create, func(fault string) enrolFaults { return enrolFaults{passkey: fault} })
}

// enrol sets up a factor and raises the login with it. set stores the factor of the form and
// returns the methods that it proves. faults places an error message in the form that was sent. If
// the subscriber has no recovery codes yet, enrol creates and shows them.
func (fp *factorPages) enrol(w http.ResponseWriter, r *http.Request,
	set func(enrollment, url.Values) (amr []string, err error), faults func(string) enrolFaults) error {
	form, req, client, err := fp.requestForm(w, r)
	if err != nil {
		return err
	}
	e, err := fp.enrollmentOf(r, req, client)
	if err != nil {
		return err
	}
	if e.over {
		return fp.logInAgain(w, r, e)
	}

	amr, err := set(e, form)
	if errors.Is(err, factor.ErrNotFirst) {
		return errStale
	}
	if fault, status := fp.formFault(w, r, err); fault != "" {
		return fp.enrolPage(w, r, e, faults(fault), status)
	}
	if err != nil {
		return err
	}

	e.login, err = fp.Logins.Raise(r.Context(), e.login.ID, e.login.SubscriberID, amr)
	if err != nil {
		return err
	}
	codes, err := fp.Factors.FirstCodes(r.Context(), e.owner())
	if err != nil {
		return err
	}
	if codes == nil {
		return fp.flow.enter(w, r, e.client, e.req, e.login)
	}
	return fp.firstCodes(w, r, e, codes)
}

// firstCodes shows new recovery codes before the request continues. They are shown only once.
func (fp *factorPages) firstCodes(w http.ResponseWriter, r *http.Request, e enrollment, codes []string) error {
	if err := fp.logins.use(w, r, e.login); err != nil {
		return err
	}
	e.req.Chosen, e.req.Proof = e.login.ID, nil
	if err := fp.Requests.Suspend(r.Context(), e.req); err != nil {
		return err
	}
	page := templates.RecoveryCodes{ID: e.req.ID, App: fp.appName(r, e.client, e.req), Codes: codes}
	return fp.write(w, r, page, templates.Options{FormAction: formAction(e.req.RedirectURI), Scripts: true})
}

// continueLogin serves POST /login/continue, which follows the page with the recovery codes. If the login
// has ended or become too old since the page was shown, the person must sign in again.
func (fp *factorPages) continueLogin(w http.ResponseWriter, r *http.Request) error {
	_, req, client, err := fp.requestForm(w, r)
	if err != nil {
		return err
	}
	live, err := fp.logins.live(r, client.ProjectID)
	if err != nil {
		return err
	}
	login, ok := live.answering(req)
	if !ok || !req.Satisfied(login, fp.Now()) {
		return backToLogin(w, req)
	}
	return fp.flow.afterLogin(w, r, client, req, login)
}
