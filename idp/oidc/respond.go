package oidc

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/templates"
)

// grant answers a request with login s. The answer is a code, an ID token, a signed-in device or
// the account page.
func (f *flow) grant(w http.ResponseWriter, r *http.Request, c idp.Client, req idp.AuthRequest, s idp.Login) error {
	switch {
	case req.Device != "":
		return f.signInDevice(w, r, c, req, s)
	case req.Account != "":
		seeOther(w, accountURL(s.ProjectID))
		return nil
	}

	v, err := f.issue(r, c, req, s)
	if err != nil {
		return f.respondError(w, r, c, req, err)
	}
	state, err := f.sessionState(w, r, req)
	if err != nil {
		return err
	}
	if state != "" {
		v.Set("session_state", state)
	}
	return f.respond(w, r, c, req, v)
}

// issue returns what a request asks for, as parameters of the response (OpenID Connect Core,
// sections 3.1.2.5, 3.2.2.5 and 3.3.2.5).
func (f *flow) issue(r *http.Request, c idp.Client, req idp.AuthRequest, s idp.Login) (url.Values, error) {
	if err := req.CheckClass(s); err != nil {
		return nil, err
	}

	v := make(url.Values)
	if req.Returns(idp.ResponseCode) {
		code, err := f.Codes.Issue(r.Context(), c, req, s)
		if err != nil {
			return nil, err
		}
		v.Set("code", code)
	}

	if req.Returns(idp.ResponseIDToken) || req.Returns(idp.ResponseToken) {
		set, err := f.Grants.IssueDirect(r.Context(), c, req, s, v.Get("code"))
		if err != nil {
			return nil, err
		}
		if set.IDToken != "" {
			v.Set("id_token", set.IDToken)
		}
		if set.AccessToken != "" {
			v.Set("access_token", set.AccessToken)
			v.Set("token_type", "Bearer")
			v.Set("expires_in", strconv.Itoa(int(set.ExpiresIn.Seconds())))
			v.Set("scope", strings.Join(set.Scope, " "))
		}
	}
	return v, nil
}

// respond sends an authorization response to the request's redirect URI, which is registered. The
// response is sent in the request's mode, and contains state and iss (RFC 9207). If the request was
// pushed, respond ends it.
func (f *flow) respond(w http.ResponseWriter, r *http.Request, c idp.Client, req idp.AuthRequest, v url.Values) error {
	if err := f.Requests.EndPushed(r.Context(), req); err != nil {
		return stale(err)
	}
	if req.State != "" {
		v.Set("state", req.State)
	}

	v.Set("iss", f.Issuer)
	if req.Signed {
		signed, err := f.Tokens.SignResponse(c, v)
		if err != nil {
			return err
		}
		v = url.Values{"response": {signed}}
	}

	switch req.Mode {
	case idp.FormPost:
		return f.postBack(w, r, c, req, v)
	case idp.Fragment:
		seeOther(w, req.RedirectURI+"#"+v.Encode())
	default:
		separator := "?"
		if strings.Contains(req.RedirectURI, "?") {
			separator = "&"
		}
		seeOther(w, req.RedirectURI+separator+v.Encode())
	}
	return nil
}

// postBack makes the browser post the response to the app (OAuth 2.0 Form Post Response Mode,
// section 2). A script submits the form; without scripts, the page shows a button.
func (f *flow) postBack(w http.ResponseWriter, r *http.Request, c idp.Client, req idp.AuthRequest, v url.Values) error {
	fields := make(map[string]string, len(v))
	for name := range v {
		fields[name] = v.Get(name)
	}
	page := templates.Return{App: f.appName(r, c, req), Host: req.Host(), URL: req.RedirectURI, Fields: fields}
	options := templates.Options{
		FormAction: formAction(req.RedirectURI),
		Scripts:    true,
		Referrer:   "strict-origin", // lets the app check the Origin of the form
	}
	if req.Has("none") {
		options.Framer = req.Origin() // apps may renew their tokens in a frame
	}
	return f.write(w, r, page, options)
}

// respondError sends an error to the client. It logs an internal error, and sends it as
// server_error. A request for a device or for the account page has no redirect URI, so respondError
// returns its error.
func (f *flow) respondError(w http.ResponseWriter, r *http.Request, c idp.Client,
	req idp.AuthRequest, err error) error {
	if req.Device != "" || req.Account != "" {
		return err
	}

	p := problem.First(err)
	if p == nil || p.Kind == problem.Unavailable {
		web.LogInternal(r, f.log, err)
	}

	if p == nil {
		p = &problem.Error{
			Code:    "server_error",
			Message: "internal error; request " + web.RequestID(r.Context()),
		}
	}
	if p.Kind == problem.Unavailable {
		p = &problem.Error{Code: "temporarily_unavailable", Message: p.Message}
	}
	return f.respond(w, r, c, req, url.Values{"error": {p.Code}, "error_description": {description(p.Message)}})
}
