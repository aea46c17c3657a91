package oidc

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/templates"
)

// These are the paths of the page that asks for a second factor, and of the page that sets one up.
const (
	factorPath = "/login/factor"
	enrolPath  = "/login/enrol"
)

// factorPathFor returns the path of the page on which the login s must present or set up a second
// factor for the request. It returns "" if the login is sufficient.
func (f *flow) factorPathFor(r *http.Request, c idp.Client, req idp.AuthRequest, s idp.Login) (string, error) {
	need, err := f.Requests.Need(r.Context(), c, req)
	if need == "" && req.CheckClass(s) != nil {
		need = idp.PreferTwo // with a second factor, the login gets the class that it lacks
	}
	if err != nil || need == "" || s.TwoFactors() {
		return "", err
	}
	if need == idp.PreferTwo && req.Has("none") {
		return "", nil // no page may be shown, and a preference must not make the request fail
	}
	set, err := f.Logins.FactorsOf(r.Context(), s.SubscriberID)
	switch {
	case err != nil:
		return "", err
	case set.Any():
		return factorPath, nil
	case need == idp.PreferTwo:
		return "", nil
	}
	return enrolPath, nil
}

// askFactor suspends a request and redirects to path, where the person presents or sets up a factor
// for login s.
func (f *flow) askFactor(w http.ResponseWriter, r *http.Request, c idp.Client, req idp.AuthRequest,
	s idp.Login, path string) error {
	req.Chosen, req.Proof = s.ID, nil
	if path == factorPath {
		req.Proof = f.Logins.ProofOf(s)
	}
	return f.suspend(w, r, c, req, path)
}

// A step is a request whose login is waiting for a second factor.
type step struct {
	req    idp.AuthRequest
	client idp.Client
	has    factor.Set
	with   string // type of factor to ask for
	over   bool   // whether no login is waiting anymore, so that the person must sign in again
}

// factorPages serves the pages on which people present a second factor or set one up.
type factorPages struct {
	*pages
	flow   *flow
	logins *browserLogins
}

// stepOf returns the step of a request. chosen is the type of factor that the person chose. If the
// step is over, only its request and client are set.
func (fp *factorPages) stepOf(r *http.Request, req idp.AuthRequest, client idp.Client, chosen string) (step, error) {
	st := step{req: req, client: client}
	if !fp.Logins.Pending(req.Proof) {
		st.over = true
		return st, nil
	}
	if req.Proof.Raises != "" {
		may, err := fp.mayRaise(r, req, client)
		if err != nil {
			return step{}, err
		}
		if !may {
			st.over = true
			return st, nil
		}
	}

	has, err := fp.Logins.FactorsOf(r.Context(), req.Proof.SubscriberID)
	if err != nil {
		return step{}, err
	}
	if !has.Any() {
		st.over = true
		return st, nil
	}
	has.Passkeys = has.Passkeys && fp.Factors.Passkeys()

	st.has, st.with = has, factorToAsk(has, chosen)
	return st, nil
}

// mayRaise reports whether the browser still has the login that the proof of a request raises, and whether
// this login is still recent enough for the request. It may have become too old while the person was
// looking for the factor.
func (fp *factorPages) mayRaise(r *http.Request, req idp.AuthRequest, client idp.Client) (bool, error) {
	live, err := fp.logins.live(r, client.ProjectID)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(live.all, func(s idp.Login) bool {
		return s.ID == req.Proof.Raises && req.Satisfied(s, fp.Now())
	}), nil
}

// factorToAsk returns the type of factor to ask for. This is the chosen one, if the subscriber has
// it, or else the best one that the subscriber has.
func factorToAsk(has factor.Set, chosen string) string {
	switch {
	case chosen == factor.TypeTOTP && has.TOTP,
		chosen == factor.TypePasskey && has.Passkeys,
		chosen == factor.TypeRecovery:
		return chosen
	case has.TOTP:
		return factor.TypeTOTP
	case has.Passkeys:
		return factor.TypePasskey
	}
	return factor.TypeRecovery
}

// showFactor serves GET /login/factor?id=&with=.
func (fp *factorPages) showFactor(w http.ResponseWriter, r *http.Request) error {
	req, c, err := fp.resume(r, r.URL.Query().Get("id"))
	if err != nil {
		return err
	}
	st, err := fp.stepOf(r, req, c, r.URL.Query().Get("with"))
	if err != nil {
		return err
	}
	if st.over {
		return backToLogin(w, st.req)
	}
	return fp.factorPage(w, r, st, "", http.StatusOK)
}

// backToLogin redirects to the login page.
func backToLogin(w http.ResponseWriter, req idp.AuthRequest) error {
	seeOther(w, "/login?id="+url.QueryEscape(req.ID))
	return nil
}

func (fp *factorPages) factorPage(w http.ResponseWriter, r *http.Request, st step, fault string, status int) error {
	page := templates.Factor{
		ID:       st.req.ID,
		App:      fp.appName(r, st.client, st.req),
		Host:     st.req.Host(),
		With:     st.with,
		TOTP:     st.has.TOTP,
		Passkeys: st.has.Passkeys,
		Error:    fault,
	}
	if st.with == factor.TypePasskey {
		owner := st.req.Proof.Owner()
		options, err := fp.Factors.BeginLogin(r.Context(), factorFlow(st.req), &owner)
		if err != nil {
			return err
		}
		page.Passkey = fp.passkeyForm(options)
	}
	return fp.write(w, r, page, templates.Options{
		Status:     status,
		FormAction: formAction(st.req.RedirectURI),
		Scripts:    true,
	})
}

func (pg *pages) passkeyForm(options []byte) templates.Passkey {
	return templates.Passkey{Options: string(options), Origin: pg.origin}
}

// factorFlow and loginFlow return the names that bind passkey challenges to a purpose and a
// request.
func factorFlow(req idp.AuthRequest) string { return "factor " + req.ID }
func loginFlow(req idp.AuthRequest) string  { return "login " + req.ID }

// proveFactor serves POST /login/factor, the form on the second-factor page.
func (fp *factorPages) proveFactor(w http.ResponseWriter, r *http.Request) error {
	form, req, c, err := fp.requestForm(w, r)
	if err != nil {
		return err
	}

	st, err := fp.stepOf(r, req, c, form.Get("with"))
	if err != nil {
		return err
	}
	if st.over {
		return backToLogin(w, st.req)
	}

	amr, err := fp.checkFactor(r, st, form)
	if fault, status := fp.formFault(w, r, err); fault != "" {
		subscriberID, refused := st.req.Proof.SubscriberID, problem.First(err)
		if err := fp.Attempts.RefuseFactor(r.Context(), st.client.ProjectID, subscriberID, refused); err != nil {
			return err
		}
		return fp.factorPage(w, r, st, fault, status)
	}
	if err != nil {
		return err
	}
	return fp.finishLogin(w, r, st.client, st.req, amr)
}

// checkFactor checks the factor in a form and returns the methods that it proves.
func (fp *factorPages) checkFactor(r *http.Request, st step, form url.Values) (amr []string, err error) {
	if st.with == factor.TypePasskey {
		return fp.checkPasskey(r, st, form.Get("credential"))
	}

	owner := st.req.Proof.Owner()
	place, err := fp.Logins.PlaceOf(r.Context(), st.client.ProjectID, *st.req.Proof, fp.visitor(r))
	if err != nil {
		return nil, err
	}

	if st.with == factor.TypeTOTP {
		return []string{"otp"}, fp.Factors.CheckTOTP(r.Context(), owner, place, form.Get("code"))
	}
	// RFC 8176 has no value for recovery codes, so the AMR only shows "mfa".
	return nil, fp.Factors.UseCode(r.Context(), owner, place, form.Get("code"))
}

// checkPasskey checks the response of a passkey and returns the methods that it proves. Only refused
// passkeys count as attempts.
func (fp *factorPages) checkPasskey(r *http.Request, st step, credential string) (amr []string, err error) {
	counted, err := fp.Attempts.CountSecondPasskey(r.Context(), st.client.ProjectID, *st.req.Proof, fp.visitor(r))
	if err != nil {
		return nil, err
	}

	key, err := fp.Factors.CheckPasskey(r.Context(), factorFlow(st.req), []byte(credential))
	if err == nil && key.Owner != st.req.Proof.Owner() {
		err = factor.ErrUnknown
	}
	if refusalIn(err) == nil {
		counted.Undo(r.Context())
	}
	if err != nil {
		return nil, err
	}
	return key.AMR(), nil
}

// refusalIn returns the error that refuses a passkey. If the passkey is correct or could not be
// checked, it returns nil.
func refusalIn(err error) *problem.Error {
	p := problem.First(err)
	if p == nil || p.Kind != problem.Invalid {
		return nil
	}
	return p
}

// finishLogin creates a login, or adds the proved factor to an existing one. It then continues the
// request with a new cookie.
func (fp *factorPages) finishLogin(w http.ResponseWriter, r *http.Request, c idp.Client,
	req idp.AuthRequest, amr []string) error {
	s, err := fp.Logins.Finish(r.Context(), c.ProjectID, *req.Proof, amr, fp.visitor(r))
	if errors.Is(err, problem.Unauthenticated) { // the subscriber has changed
		return backToLogin(w, req)
	}
	if err != nil {
		return err
	}
	if err := fp.Upstreams.RememberProof(r.Context(), *req.Proof, s); err != nil {
		return err
	}
	return fp.flow.enter(w, r, c, req, s)
}

// enter continues a request with the login s, which was just created or has just got a second factor.
func (f *flow) enter(w http.ResponseWriter, r *http.Request, c idp.Client, req idp.AuthRequest, s idp.Login) error {
	if err := f.logins.use(w, r, s); err != nil {
		return err
	}
	req.Chosen, req.Proof = s.ID, nil
	if req.Link != nil {
		return f.suspend(w, r, c, req, linkPath)
	}
	return f.afterLogin(w, r, c, req, s)
}

// logInByPasskey serves POST /login/passkey. The form contains the response of a passkey that was used on
// the login page.
func (si *signIn) logInByPasskey(w http.ResponseWriter, r *http.Request) error {
	form, req, c, err := si.requestForm(w, r)
	if err != nil {
		return err
	}
	if si.Factors == nil {
		return errStale
	}

	// The attempt is counted before the check, because each refused passkey writes an audit event.
	from := si.visitor(r)
	counted, err := si.Attempts.CountPasskey(r.Context(), from)
	if errors.Is(err, problem.RateLimited) {
		page := templates.Login{Email: req.LoginHint, PasskeyError: si.throttled(w, r, problem.First(err))}
		return si.loginPage(w, r, c, req, page, http.StatusTooManyRequests)
	}
	if err != nil {
		return err
	}

	key, err := si.Factors.CheckPasskey(r.Context(), loginFlow(req), []byte(form.Get("credential")))
	var s idp.Login
	if err == nil {
		s, err = si.Logins.LogInByPasskey(r.Context(), c.ProjectID, key, from)
	}

	if p := refusalIn(err); p != nil {
		if err := si.Attempts.RefuseFactor(r.Context(), c.ProjectID, subscriberOf(key), p); err != nil {
			return err
		}
		page := templates.Login{Email: req.LoginHint, PasskeyError: si.fault(r, p)}
		return si.loginPage(w, r, c, req, page, http.StatusUnprocessableEntity)
	}
	counted.Undo(r.Context())
	if err != nil {
		return err
	}
	return si.flow.enter(w, r, c, req, s)
}

// subscriberOf returns the id of the subscriber whose passkey was used, or "" if it is unknown.
func subscriberOf(key factor.Passkey) string {
	if key.Owner.Kind != factor.Subscriber {
		return ""
	}
	return key.Owner.ID
}

// offerPasskey adds a passkey prompt to the login page.
func (si *signIn) offerPasskey(r *http.Request, req idp.AuthRequest, page *templates.Login) error {
	if si.Factors == nil || !si.Factors.Passkeys() {
		return nil
	}
	options, err := si.Factors.BeginLogin(r.Context(), loginFlow(req), nil)
	if err != nil {
		return err
	}
	page.Passkey = si.passkeyForm(options)
	page.Passkey.Error = cmp.Or(page.PasskeyError, page.Passkey.Error)
	return nil
}
