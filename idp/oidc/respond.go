package oidc

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/templates"
)

// grant answers a request from a login.
func (a *API) grant(w http.ResponseWriter, r *http.Request, c idp.Client, req idp.AuthRequest, s idp.Session) error {
	switch {
	case req.Device != "":
		return a.signInDevice(w, r, c, req, s)
	case req.Account != "":
		seeOther(w, accountURL(s.ProjectID))
		return nil
	}
	var value string
	var err error
	kind := cmp.Or(req.ResponseType, idp.ResponseCode)
	if kind == idp.ResponseIDToken {
		value, err = a.IssueIDToken(r.Context(), c, req, s)
	} else {
		value, err = a.IssueCode(r.Context(), req, s)
	}
	if err != nil {
		return a.respondError(w, r, c, req, err)
	}
	return a.respond(w, r, c, req, url.Values{kind: {value}}) // the parameter has the name of the type
}

// respond sends an authorization response to the proven redirect URI of a request,
// in the mode of the request, with state and iss (RFC 9207).
func (a *API) respond(w http.ResponseWriter, r *http.Request, c idp.Client, req idp.AuthRequest, v url.Values) error {
	if req.State != "" {
		v.Set("state", req.State)
	}
	v.Set("iss", a.Issuer)
	switch req.Mode {
	case idp.FormPost:
		return a.postBack(w, r, c, req, v)
	case idp.Fragment:
		seeOther(w, req.RedirectURI+"#"+v.Encode())
	default:
		sep := "?"
		if strings.Contains(req.RedirectURI, "?") {
			sep = "&"
		}
		seeOther(w, req.RedirectURI+sep+v.Encode())
	}
	return nil
}

// postBack has the browser post a response (OAuth 2.0 Form Post Response Mode,
// section 2): by a script, or by a button where scripts do not run.
func (a *API) postBack(w http.ResponseWriter, r *http.Request, c idp.Client, req idp.AuthRequest, v url.Values) error {
	fields := make(map[string]string, len(v))
	for name := range v {
		fields[name] = v.Get(name)
	}
	page := templates.Return{App: a.appName(r, c, req), Host: req.Host(), URL: req.RedirectURI, Fields: fields}
	o := templates.Options{FormAction: formAction(req.RedirectURI), Scripts: true,
		Referrer: "strict-origin"} // the app sees by Origin who posts
	if req.Has("none") {
		o.Framer = req.Origin() // where an app renews its tokens in a frame
	}
	return a.write(w, r, page, o)
}

// respondError tells an error to the client. An internal one is told as
// server_error and logged. A device is told by its next poll alone, and on the way to
// the subscriber's own page there is no client.
func (a *API) respondError(w http.ResponseWriter, r *http.Request, c idp.Client, req idp.AuthRequest, err error) error {
	if req.Device != "" || req.Account != "" {
		return err
	}
	p := problem.First(err)
	if p == nil || p.Kind == problem.Unavailable {
		web.LogInternal(r, a.log, err)
	}
	if p == nil {
		p = &problem.Error{Code: "server_error",
			Message: "something went wrong here; request " + web.RequestID(r.Context())}
	}
	if p.Kind == problem.Unavailable {
		p = &problem.Error{Code: "temporarily_unavailable", Message: p.Message}
	}
	return a.respond(w, r, c, req, url.Values{"error": {p.Code}, "error_description": {p.Message}})
}
