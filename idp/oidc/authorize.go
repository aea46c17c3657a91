package oidc

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/limit"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/templates"
)

// maxQuery is the maximum length in bytes of the parameters of an authorization request.
const maxQuery = 16 << 10

// authorizePath is the path of the authorization endpoint.
const authorizePath = "/login/oauth/authorize"

// flow handles authorization requests, from their parameters to their response.
type flow struct {
	*pages
	logins *browserLogins
}

// authorize serves GET /login/oauth/authorize (OpenID Connect Core, section 3.1.2).
func (f *flow) authorize(w http.ResponseWriter, r *http.Request) error {
	if err := f.Limits.PassNetwork(r.Context(), limit.AuthorizePerNetwork, web.Network(r)); err != nil {
		return err
	}
	if len(r.URL.RawQuery) > maxQuery {
		return pageError(http.StatusRequestURITooLong, "error.long", "error.long-text")
	}

	v, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return badRequest("error.parameters")
	}

	c, err := f.findClient(r, v)
	if err != nil {
		return err
	}
	resolved, src, err := f.Requests.Resolve(r.Context(), c, v)
	if err != nil {
		return f.refuse(w, r, c, v, err)
	}

	// After this check, the redirect URI is trusted, and errors are sent to the client.
	if err := checkRedirect(c, resolved); err != nil {
		return err
	}
	req, err := f.Requests.Parse(c, resolved, src) // even after an error, req has the response mode
	if paramsErr := checkParams(resolved); paramsErr != nil {
		err = paramsErr
	}
	if err != nil {
		return f.respondError(w, r, c, req, err)
	}
	if err := f.Requests.CheckCreate(r.Context(), c, req); err != nil {
		return f.respondError(w, r, c, req, err)
	}

	return f.proceed(w, r, c, req)
}

// authorizeByPost serves POST /login/oauth/authorize with a form that contains the parameters. The
// browser sends the form from the client's site without our cookies, which are SameSite=Lax. The
// handler therefore redirects to a GET.
func (f *flow) authorizeByPost(w http.ResponseWriter, r *http.Request) error {
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	if !strings.EqualFold(strings.TrimSpace(kind), formType) {
		return pageError(http.StatusUnsupportedMediaType, "error.unreadable", "error.post")
	}
	if web.Encoded(r) {
		return pageError(http.StatusUnsupportedMediaType, "error.unreadable", "error.compressed")
	}

	body, err := io.ReadAll(io.LimitReader(r.Body, maxQuery+1))
	if err != nil || len(body) > maxQuery {
		return pageError(http.StatusRequestEntityTooLarge, "error.long", "error.long-text")
	}
	v, err := url.ParseQuery(string(body))
	if err != nil || r.URL.RawQuery != "" {
		return badRequest("error.parameters")
	}

	seeOther(w, r.URL.Path+"?"+v.Encode())
	return nil
}

// checkParams rejects repeated parameters except resource (RFC 6749, section 3.1; RFC 8707, section
// 2), and values that are not valid UTF-8. Only state and password may contain NUL.
func checkParams(v url.Values) error {
	for name, values := range v {
		if len(values) > 1 && name != "resource" {
			return &problem.Error{Kind: problem.Invalid, Code: "invalid_request", Message: "a parameter is repeated"}
		}
		mayContainNUL := name == "state" || name == "password"
		isNotText := func(s string) bool {
			return !utf8.ValidString(s) || !mayContainNUL && strings.Contains(s, "\x00")
		}
		if isNotText(name) || slices.ContainsFunc(values, isNotText) {
			return &problem.Error{Kind: problem.Invalid, Code: "invalid_request", Message: "a parameter is not text"}
		}
	}
	return nil
}

// findClient returns the client that a request names.
func (f *flow) findClient(r *http.Request, v url.Values) (idp.Client, error) {
	if err := sentOnce(v, "client_id"); err != nil {
		return idp.Client{}, err
	}
	c, err := f.Clients.Find(r.Context(), v.Get("client_id"))
	if errors.Is(err, problem.NotFound) {
		return idp.Client{}, notProven(noClient)
	}
	if err != nil {
		return idp.Client{}, err
	}
	return c, nil
}

// checkRedirect returns an error unless the redirect URI is registered for the client. Until this
// is known, errors must be shown on pages and must not be sent to the URI (RFC 9700, section 4.11).
func checkRedirect(c idp.Client, v url.Values) error {
	if err := sentOnce(v, "redirect_uri"); err != nil {
		return err
	}
	if !c.AllowsRedirect(v.Get("redirect_uri")) {
		return notProven("redirect_uri is not one of those registered for client " + c.ID + listKnown(c.RedirectURIs))
	}
	return nil
}

// sentOnce returns an error unless the named parameter was sent exactly once.
func sentOnce(v url.Values, name string) error {
	switch len(v[name]) {
	case 0:
		return notProven(name + " is missing")
	case 1:
		return nil
	}
	return notProven(name + " was sent more than once")
}

// refuse answers a request whose request object or request_uri is invalid. If the other parameters
// contain a registered redirect URI, refuse sends the error to the client. Otherwise it shows a
// page.
func (f *flow) refuse(w http.ResponseWriter, r *http.Request, c idp.Client, v url.Values, err error) error {
	if checkRedirect(c, v) == nil {
		return f.respondError(w, r, c, f.Requests.Unresolved(c, v), err)
	}
	p := problem.First(err)
	if p == nil || p.Kind != problem.Invalid {
		return err
	}
	return &shown{
		status: http.StatusBadRequest,
		page:   templates.Error{Title: "error.app", Text: "error.object"},
		cause:  p.Message,
	}
}

// proceed answers a request with a login of the browser. If a page is needed first, it stores the
// request and redirects to that page. The package comment has a diagram of the steps.
func (f *flow) proceed(w http.ResponseWriter, r *http.Request, c idp.Client, req idp.AuthRequest) error {
	l, err := f.logins.live(r, c.ProjectID)
	if err != nil {
		return f.respondError(w, r, c, req, err)
	}

	if req.Has("create") {
		return f.suspend(w, r, c, req, "/register")
	}

	// Which login can answer? If none can, the person must sign in or choose a login.
	s, found := l.answering(req)
	if !found || !req.Satisfied(s, f.Now()) {
		if l.mayChoose(req) {
			return f.askOrFail(w, r, c, req, "/accounts", errSelectionRequired)
		}
		return f.askOrFail(w, r, c, req, "/login", errLoginRequired)
	}

	// Does the login need a second factor for this request?
	factorPage, err := f.factorPathFor(r, c, req, s)
	if err != nil {
		return f.respondError(w, r, c, req, err)
	}
	if factorPage != "" {
		if req.Has("none") {
			return f.respondError(w, r, c, req, errLoginRequired)
		}
		return f.askFactor(w, r, c, req, s, factorPage)
	}

	// Does the login have the acr that the request requires, if any? If not, a new login may have it.
	if err := req.CheckClass(s); err != nil {
		return f.askOrFail(w, r, c, req, "/login", problem.First(err))
	}

	// Has the subscriber consented to everything that the request asks for?
	agreed, err := f.Consents.Covers(r.Context(), c, s.SubscriberID, c.Rights(req))
	if err != nil {
		return f.respondError(w, r, c, req, err)
	}
	if !agreed || req.Has("consent") {
		return f.askOrFail(w, r, c, req, "/consent", errConsentRequired)
	}

	return f.grant(w, r, c, req, s)
}

// askOrFail suspends the request and redirects to the page at path. With prompt=none, which permits
// no page, it sends silentErr to the client instead.
func (f *flow) askOrFail(w http.ResponseWriter, r *http.Request, c idp.Client, req idp.AuthRequest,
	path string, silentErr *problem.Error) error {
	if req.Has("none") {
		return f.respondError(w, r, c, req, silentErr)
	}
	return f.suspend(w, r, c, req, path)
}

// These are the errors for prompt=none (OpenID Connect Core, section 3.1.2.6).
var (
	errSelectionRequired = &problem.Error{
		Kind:    problem.Invalid,
		Code:    "account_selection_required",
		Message: "several accounts are signed in, and none was chosen",
	}
	errLoginRequired = &problem.Error{
		Kind:    problem.Invalid,
		Code:    "login_required",
		Message: "nobody is signed in, or the login is too old or lacks a required factor",
	}
	errConsentRequired = &problem.Error{
		Kind:    problem.Invalid,
		Code:    "consent_required",
		Message: "the subscriber has not consented to these scopes",
	}
)

// suspend stores the request, bound to this browser, and redirects to the page at path.
func (f *flow) suspend(w http.ResponseWriter, r *http.Request, c idp.Client, req idp.AuthRequest, path string) error {
	req.Browser = session.Digest(f.cookies.FlowFor(w, r, req.ID))
	if err := f.Requests.Suspend(r.Context(), req); err != nil {
		return f.respondError(w, r, c, req, err)
	}
	f.rememberStart(w, r, req.ID)
	to := path + "?id=" + url.QueryEscape(req.ID)
	if r.Method == http.MethodGet && r.URL.Query().Has(restartParam) {
		to += "&again"
	}
	seeOther(w, to)
	return nil
}

// seeOther redirects with status 303. A browser that has just posted a password then requests the
// next page without it (RFC 9700, section 4.12).
func seeOther(w http.ResponseWriter, to string) {
	web.NoStore(w)
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}
