package oidc

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/templates"
)

// maxForm is the maximum size in bytes of a form that is sent from a page.
const maxForm = 16 << 10

// signIn serves the pages where people log in.
type signIn struct {
	*pages
	flow   *flow
	logins *browserLogins
}

// showLogin serves GET /login?id=.
func (si *signIn) showLogin(w http.ResponseWriter, r *http.Request) error {
	req, c, err := si.resume(r, r.URL.Query().Get("id"))
	if err != nil {
		return err
	}
	again := r.URL.Query().Has("again")
	return si.loginPage(w, r, c, req, templates.Login{
		Email:      req.LoginHint,
		EmailFocus: req.LoginHint == "",
		Again:      again,
	}, http.StatusOK)
}

func (si *signIn) loginPage(w http.ResponseWriter, r *http.Request, c idp.Client,
	req idp.AuthRequest, p templates.Login, status int) error {
	p.ID, p.App, p.Host = req.ID, si.appName(r, c, req), req.Host()
	var err error
	if p.Register, err = si.MayRegister(r.Context(), c.ProjectID); err != nil {
		return err
	}
	if err := si.offerPasskey(r, req, &p); err != nil {
		return err
	}
	targets, err := si.offerUpstreams(r, c, req, &p)
	if err != nil {
		return err
	}
	return si.write(w, r, p, templates.Options{
		Status:     status,
		FormAction: append(targets, formAction(req.RedirectURI)...),
		Scripts:    p.Passkey.Options != "",
	})
}

// logIn serves POST /login, the form of the login page.
func (si *signIn) logIn(w http.ResponseWriter, r *http.Request) error {
	form, req, c, err := si.requestForm(w, r)
	if err != nil {
		return err
	}

	email := form.Get("username")
	if form.Get("forgot") != "" { // keep the address, ignore the password
		req.LoginHint = typedEmail(email)
		return si.flow.suspend(w, r, c, req, "/forgot")
	}

	s, err := si.Logins.LogIn(r.Context(), c.ProjectID, email, form.Get("password"), si.visitor(r))
	if errors.Is(err, problem.Unauthenticated) {
		page := templates.Login{Email: email, Error: si.fault(r, problem.First(err))}
		return si.loginPage(w, r, c, req, page, http.StatusUnprocessableEntity)
	}

	var more *idp.Unfinished
	if errors.As(err, &more) {
		req.Proof = &more.Proof
		return si.flow.suspend(w, r, c, req, factorPath)
	}
	if errors.Is(err, problem.RateLimited) {
		page := templates.Login{Email: email, Error: si.throttled(w, r, problem.First(err))}
		return si.loginPage(w, r, c, req, page, http.StatusTooManyRequests)
	}
	if err != nil {
		return err
	}

	return si.flow.enter(w, r, c, req, s)
}

var errOther = &problem.Error{
	Kind:    problem.Invalid,
	Code:    "login_required",
	Message: "a different person signed in than the request requires",
}

// afterLogin continues a request with login s. It redirects to the next page that is needed, or
// answers the client. If the request asks for another person, the client gets only an error (OpenID
// Connect Core, section 3.1.2.1). A request for the account page has no client, so it leads to the
// account page of the person who has signed in.
func (f *flow) afterLogin(w http.ResponseWriter, r *http.Request, c idp.Client, req idp.AuthRequest,
	s idp.Login) error {
	if !req.Means(s) {
		if err := f.drop(w, r, req); err != nil {
			return err
		}
		if req.Account != "" {
			seeOther(w, accountURL(s.ProjectID))
			return nil
		}
		return f.respondError(w, r, c, req, errOther)
	}

	path, err := f.factorPathFor(r, c, req, s)
	if err != nil {
		return err
	}
	if path != "" {
		return f.askFactor(w, r, c, req, s, path)
	}

	if unmet := req.CheckClass(s); unmet != nil {
		if s.AuthTime.Before(req.Created) { // the person has chosen the login
			return f.suspend(w, r, c, req, "/login")
		}
		if err := f.drop(w, r, req); err != nil {
			return err
		}
		return f.respondError(w, r, c, req, unmet)
	}

	agreed, err := f.Consents.Covers(r.Context(), c, s.SubscriberID, c.Rights(req))
	if err != nil {
		return err
	}
	if !agreed || req.Has("consent") {
		return f.suspend(w, r, c, req, "/consent")
	}
	return f.answer(w, r, c, req, s)
}

// answer answers a suspended request with login s. It does so only once, even if the form is posted
// several times.
func (f *flow) answer(w http.ResponseWriter, r *http.Request, c idp.Client, req idp.AuthRequest, s idp.Login) error {
	if req.Device != "" {
		return f.signInDevice(w, r, c, req, s)
	}
	if err := f.drop(w, r, req); err != nil {
		return err
	}
	return f.grant(w, r, c, req, s)
}

// drop ends a suspended request. Of several concurrent answers to a request, one succeeds, and the
// others get errStale.
func (f *flow) drop(w http.ResponseWriter, r *http.Request, req idp.AuthRequest) error {
	err := f.Requests.Drop(r.Context(), req)
	if problem.IgnoreNotFound(err) != nil {
		return err // the browser can still continue the request
	}
	f.forgetStart(w, r, req.ID)
	f.cookies.EndFlow(w, r, req.ID)
	if err != nil {
		return errStale
	}
	return nil
}

// resume returns the suspended request with the given id, and its client. If the request no longer
// exists, it returns errRequestGone. If another browser began the request, it returns errStale.
func (pg *pages) resume(r *http.Request, id string) (idp.AuthRequest, idp.Client, error) {
	req, c, err := pg.Requests.Resume(r.Context(), id, pg.cookies.FlowOfRequest(r, id))
	switch {
	case errors.Is(err, problem.NotFound):
		err = errRequestGone
	case errors.Is(err, problem.Forbidden):
		err = errStale
	}
	learn(r, req, c)
	return req, c, err
}

// postForm reads the form in the body. Each field may occur once.
func postForm(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	if web.Encoded(r) {
		return nil, pageError(http.StatusUnsupportedMediaType, "error.unreadable", "error.compressed")
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return nil, badRequest("error.form")
	}
	if checkParams(r.PostForm) != nil {
		return nil, badRequest("error.field")
	}
	return r.PostForm, nil
}

// visitor describes the browser of r.
func (pg *pages) visitor(r *http.Request) idp.Visitor {
	return idp.Visitor{
		UserAgent: strings.ToValidUTF8(r.UserAgent(), ""),
		Address:   web.Address(r),
		Mark:      pg.browserMark(r),
		Network:   web.Network(r),
		Device:    pg.cookies.Device(r),
	}
}

func (pg *pages) appName(r *http.Request, c idp.Client, req idp.AuthRequest) string {
	if req.Account != "" {
		return pg.words(r).Say("your-account")
	}
	if c.Name != "" {
		return c.Name
	}
	if req.Device != "" {
		return c.ID
	}
	return req.Host()
}

// formAction returns the form-action policy for a page whose form leads to redirectURI. The policy
// contains only the scheme of the URI, because browsers also apply it to redirects, and the client may
// redirect to another host.
func formAction(redirectURI string) []string {
	scheme, _, found := strings.Cut(redirectURI, ":")
	if !found {
		return nil
	}
	return []string{scheme + ":"}
}
