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
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/templates"
)

// The pages of a second factor, and of its set-up where it is needed and there is none.
const (
	factorPage = "/login/factor"
	enrolPage  = "/login/enrol"
)

// lacking returns the page where a login proves what a request needs beside; "" where it
// is enough.
func (a *API) lacking(r *http.Request, c idp.Client, req idp.AuthRequest, s idp.Session) (string, error) {
	need, err := a.Need(r.Context(), c, req)
	if err != nil || need == "" || s.TwoFactors() {
		return "", err
	}
	set, err := a.FactorsOf(r.Context(), s.SubscriberID)
	switch {
	case err != nil:
		return "", err
	case set.Any():
		return factorPage, nil
	case need == idp.PreferTwo:
		return "", nil
	}
	return enrolPage, nil
}

// lead suspends a request and leads to the page where its login proves more.
func (a *API) lead(w http.ResponseWriter, r *http.Request, c idp.Client, req idp.AuthRequest, s idp.Session, page string) error {
	req.Chosen, req.Proof = s.ID, nil
	if page == factorPage {
		req.Proof = a.ProofOf(s)
	}
	return a.suspend(w, r, c, req, page)
}

// A step is a request whose login waits for a second factor.
type step struct {
	req  idp.AuthRequest
	c    idp.Client
	has  factor.Set
	with string // which factor is asked for
}

// stepOf returns the step of a request. Where nobody waits, any more, it says
// so with over: the login begins anew then.
func (a *API) stepOf(r *http.Request, req idp.AuthRequest, c idp.Client, with string) (st step, over bool, err error) {
	st.req, st.c, st.with = req, c, with
	if !a.Pending(st.req.Proof) {
		return st, true, nil
	}
	if st.has, err = a.FactorsOf(r.Context(), st.req.Proof.SubscriberID); err != nil || !st.has.Any() {
		return st, err == nil, err
	}
	st.has.Passkeys = st.has.Passkeys && a.Factors.Passkeys()
	ways := []string{factor.TypeTOTP, factor.TypePasskey, factor.TypeRecovery}
	if !slices.Contains(ways, st.with) || st.with == factor.TypeTOTP && !st.has.TOTP ||
		st.with == factor.TypePasskey && !st.has.Passkeys {
		st.with = factor.TypeRecovery
		if st.has.TOTP {
			st.with = factor.TypeTOTP
		} else if st.has.Passkeys {
			st.with = factor.TypePasskey
		}
	}
	return st, false, nil
}

// showFactor serves GET /login/factor?id=, with the factor that is to be asked for.
func (a *API) showFactor(w http.ResponseWriter, r *http.Request) error {
	req, c, err := a.resume(r, r.URL.Query().Get("id"))
	if err != nil {
		return err
	}
	st, over, err := a.stepOf(r, req, c, r.URL.Query().Get("with"))
	if err != nil {
		return err
	}
	if over {
		return beginAnew(w, st.req)
	}
	return a.factorPage(w, r, st, "", http.StatusOK)
}

// beginAnew leads back to the password.
func beginAnew(w http.ResponseWriter, req idp.AuthRequest) error {
	seeOther(w, "/login?id="+url.QueryEscape(req.ID))
	return nil
}

func (a *API) factorPage(w http.ResponseWriter, r *http.Request, st step, fault string, status int) error {
	page := templates.Factor{
		ID: st.req.ID, App: a.appName(r, st.c, st.req), Host: st.req.Host(), With: st.with, TOTP: st.has.TOTP,
		Passkeys: st.has.Passkeys, Error: fault,
	}
	if st.with == factor.TypePasskey {
		owner := st.req.Proof.Owner()
		options, err := a.Factors.BeginLogin(r.Context(), factorFlow(st.req), &owner)
		if err != nil {
			return err
		}
		page.Passkey = a.passkeyForm(options)
	}
	return a.write(w, r, page, templates.Options{Status: status, FormAction: formAction(st.req.RedirectURI),
		Scripts: true})
}

func (a *API) passkeyForm(options []byte) templates.Passkey {
	return templates.Passkey{Options: string(options), Origin: a.origin}
}

// factorFlow and loginFlow name what a passkey's challenge is for.
func factorFlow(req idp.AuthRequest) string { return "factor " + req.ID }
func loginFlow(req idp.AuthRequest) string  { return "login " + req.ID }

// proveFactor serves POST /login/factor: a form of that page.
func (a *API) proveFactor(w http.ResponseWriter, r *http.Request) error {
	form, req, c, err := a.flowForm(w, r)
	if err != nil {
		return err
	}
	st, over, err := a.stepOf(r, req, c, form.Get("with"))
	if err != nil {
		return err
	}
	if over {
		return beginAnew(w, st.req)
	}
	amr, err := a.checkFactor(r, st, form)
	if fault, status := a.toldFault(w, r, err); fault != "" {
		if err := a.RefuseFactor(r.Context(), st.c.ProjectID, st.req.Proof.SubscriberID, problem.First(err)); err != nil {
			return err
		}
		return a.factorPage(w, r, st, fault, status)
	}
	if err != nil {
		return err
	}
	return a.finishLogin(w, r, st.c, st.req, amr)
}

// toldFault returns the sentence of an error that whoever tried is told on the page.
func (a *API) toldFault(w http.ResponseWriter, r *http.Request, err error) (sentence string, status int) {
	p := problem.First(err)
	switch {
	case p == nil:
		return "", 0
	case p.Kind == problem.Invalid:
		return a.fault(r, p), http.StatusUnprocessableEntity
	case p.Kind == problem.RateLimited:
		web.RetryAfter(w, p)
		return a.fault(r, p), http.StatusTooManyRequests
	}
	return "", 0
}

// checkFactor takes what a form gives, and says what it proves.
func (a *API) checkFactor(r *http.Request, st step, form url.Values) (amr []string, err error) {
	owner := st.req.Proof.Owner()
	at, err := a.PlaceOf(r.Context(), st.c.ProjectID, *st.req.Proof, a.visitor(r))
	if err != nil {
		return nil, err
	}
	switch st.with {
	case factor.TypePasskey:
		key, err := a.Factors.CheckPasskey(r.Context(), factorFlow(st.req), []byte(form.Get("credential")))
		if err == nil && key.Owner != owner {
			err = factor.ErrUnknown
		}
		return key.AMR(), err
	case factor.TypeTOTP:
		return []string{"otp"}, a.Factors.CheckTOTP(r.Context(), owner, at, form.Get("code"))
	}
	// A recovery code is none of the methods that RFC 8176 names; "mfa" alone tells of it.
	return nil, a.Factors.UseCode(r.Context(), owner, at, form.Get("code"))
}

// finishLogin makes or raises the login of a request's proof, and goes on with it under
// a new cookie.
func (a *API) finishLogin(w http.ResponseWriter, r *http.Request, c idp.Client, req idp.AuthRequest, amr []string) error {
	if sid := req.Proof.Raises; sid != "" {
		l, err := a.loginsOf(r, c.ProjectID)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(l.all, func(s idp.Session) bool { return s.ID == sid }) {
			return beginAnew(w, req)
		}
	}
	s, err := a.Finish(r.Context(), c.ProjectID, *req.Proof, amr, a.visitor(r))
	if errors.Is(err, problem.Unauthenticated) { // changed meanwhile
		return beginAnew(w, req)
	}
	if err != nil {
		return err
	}
	return a.entered(w, r, c, req, s)
}

// entered goes on with a request whose login has just been made.
func (a *API) entered(w http.ResponseWriter, r *http.Request, c idp.Client, req idp.AuthRequest, s idp.Session) error {
	if err := a.setLogin(w, r, s); err != nil {
		return err
	}
	req.Chosen, req.Proof = s.ID, nil
	return a.afterLogin(w, r, c, req, s)
}

// logInByPasskey serves POST /login/passkey: a passkey that was used on the login page.
func (a *API) logInByPasskey(w http.ResponseWriter, r *http.Request) error {
	form, req, c, err := a.flowForm(w, r)
	if err != nil {
		return err
	}
	if a.Factors == nil {
		return errStale
	}
	from := a.visitor(r)
	if err := a.CountPasskey(r.Context(), from); err != nil {
		return err
	}
	key, err := a.Factors.CheckPasskey(r.Context(), loginFlow(req), []byte(form.Get("credential")))
	var s idp.Session
	if err == nil {
		s, err = a.LogInByPasskey(r.Context(), c.ProjectID, key, from)
	}
	if p := problem.First(err); p != nil && p.Kind == problem.Invalid {
		if err := a.RefuseFactor(r.Context(), c.ProjectID, subscriberOf(key), p); err != nil {
			return err
		}
		page := templates.Login{Email: req.LoginHint, PasskeyError: a.fault(r, p)}
		return a.loginPage(w, r, c, req, page, http.StatusUnprocessableEntity)
	}
	if err != nil {
		return err
	}
	return a.entered(w, r, c, req, s)
}

// subscriberOf returns the subscriber whose passkey was used, if that was found.
func subscriberOf(key factor.Passkey) string {
	if key.Owner.Kind != factor.Subscriber {
		return ""
	}
	return key.Owner.ID
}

// offerPasskey puts the prompt for a passkey on a login page.
func (a *API) offerPasskey(r *http.Request, req idp.AuthRequest, page *templates.Login) error {
	if a.Factors == nil || !a.Factors.Passkeys() {
		return nil
	}
	options, err := a.Factors.BeginLogin(r.Context(), loginFlow(req), nil)
	if err != nil {
		return err
	}
	page.Passkey = a.passkeyForm(options)
	page.Passkey.Error = cmp.Or(page.PasskeyError, page.Passkey.Error)
	return nil
}
