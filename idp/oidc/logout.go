package oidc

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/templates"
)

// logout serves the endpoint of RP-Initiated Logout and the pages to sign out.
type logout struct {
	*pages
	logins *browserLogins
}

// badLogout is the answer to a logout request whose parts do not fit together.
func badLogout(cause string) error {
	return &shown{status: http.StatusBadRequest,
		page: templates.Error{Title: "error.logout", Text: "error.logout-text",
			Advice: "error.logout-advice"}, cause: cause}
}

// A logoutRequest is a request of RP-Initiated Logout, section 2, proven as far
// as it goes.
type logoutRequest struct {
	client     idp.Client // zero where none is named
	hint       idp.IDHint // zero where there is none
	redirectTo string     // a registered URI, or ""
	state      string
	again      string // where to sign in again: the app, else the account
}

// endSessionByPost serves POST /oauth/logout. It comes from the client's site,
// without our cookies (they are SameSite=Lax), so it is sent round once more as a
// GET, which brings them.
func (lo *logout) endSessionByPost(w http.ResponseWriter, r *http.Request) error {
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
func (lo *logout) endSession(w http.ResponseWriter, r *http.Request) error {
	req, err := lo.parse(r, r.URL.Query())
	if err != nil {
		return err
	}
	all, err := lo.logins.all(r)
	if err != nil {
		return err
	}
	ends, sure := req.ends(all)
	if !sure {
		return lo.confirmPage(w, r, req)
	}
	if err := lo.Logins.End(r.Context(), ends...); err != nil {
		return err
	}
	return lo.finish(w, r, req)
}

// ends returns the logins of a browser that a request ends. An ID token is no credential:
// apps hand it on, and old ones lie in logs. So it means a login only in the browser that
// the login was made in, and then all that its subscriber has made there, since that one
// may have signed in anew after the token was given. sure is false where the person must
// be asked first: without a hint, or with that of another login, if there is any that
// the answer would end.
func (req logoutRequest) ends(all []idp.Login) (ids []string, sure bool) {
	hinted := slices.IndexFunc(all, func(s idp.Login) bool {
		return req.hint.SessionID != "" && s.ID == req.hint.SessionID
	})
	for _, s := range all {
		if hinted >= 0 && s.SubscriberID == all[hinted].SubscriberID {
			ids = append(ids, s.ID)
		}
	}
	return ids, hinted >= 0 || !slices.ContainsFunc(all, req.reaches)
}

// reaches reports whether a confirmed request ends a login of the browser: in the
// client's project, or any where none is named.
func (req logoutRequest) reaches(s idp.Login) bool {
	return req.client.ID == "" || req.client.ProjectID == s.ProjectID
}

func (lo *logout) parse(r *http.Request, v url.Values) (req logoutRequest, err error) {
	if checkParams(v) != nil {
		return req, badLogout("a parameter is repeated, or is not text")
	}
	clientID := v.Get("client_id")
	if raw := v.Get("id_token_hint"); raw != "" {
		hint, ok := lo.Tokens.OpenIDHint(raw)
		if !ok {
			return req, badLogout("id_token_hint is no ID token that was signed here")
		}
		if clientID != "" && clientID != hint.ClientID {
			return req, badLogout("client_id is not that of id_token_hint, which is " + hint.ClientID)
		}
		req.hint, clientID = hint, hint.ClientID
	}
	if clientID != "" {
		if req.client, err = lo.Clients.Find(r.Context(), clientID); errors.Is(err, problem.NotFound) {
			return req, badLogout(noClient)
		} else if err != nil {
			return req, err
		}
		req.hint.SessionID = lo.Subjects.SessionOf(req.client, req.hint.SessionID)
	}
	req.again = home(req.client)
	if m := mannerOf(r); v.Get("ui_locales") != "" {
		m.locales = v.Get("ui_locales")
	}
	mannerOf(r).client = req.client
	req.redirectTo, req.state = v.Get("post_logout_redirect_uri"), v.Get("state")
	if req.redirectTo != "" && !req.client.AllowsLogoutTo(req.redirectTo) {
		return req, badLogout("post_logout_redirect_uri is none of those registered for client " +
			req.client.ID + known(req.client.LogoutURIs))
	}
	return req, nil
}

func (lo *logout) confirmPage(w http.ResponseWriter, r *http.Request, req logoutRequest) error {
	fields := make(map[string]string)
	for name, value := range map[string]string{"client_id": req.client.ID,
		"post_logout_redirect_uri": req.redirectTo, "state": req.state} {
		if value != "" {
			fields[name] = value
		}
	}
	if asked := r.URL.Query().Get("ui_locales"); len(asked) <= maxLocales && asked != "" {
		fields["ui_locales"] = asked
	}
	o := templates.Options{}
	if req.redirectTo != "" {
		o.FormAction = formAction(req.redirectTo)
	}
	return lo.write(w, r, templates.Logout{Token: lo.pageToken(w, r), App: req.client.Name, Fields: fields}, o)
}

// showLogout serves GET /logout: the page to sign out without an app.
func (lo *logout) showLogout(w http.ResponseWriter, r *http.Request) error {
	return lo.confirmPage(w, r, logoutRequest{})
}

// logOut serves POST /logout: the answer to the confirmation page. It ends all logins
// made in the browser in the client's project, whoever's they are, or all of them where
// no client is named. A login of another browser it does not touch, whatever was hinted.
func (lo *logout) logOut(w http.ResponseWriter, r *http.Request) error {
	form, err := lo.pageForm(w, r)
	if err != nil {
		return err
	}
	form.Del("token")
	form.Del("id_token_hint") // the person has answered; a hint has no say here
	req, err := lo.parse(r, form)
	if err != nil {
		return err
	}
	if all, err := lo.logins.all(r); err == nil && len(all) > 0 && req.again == "" {
		req.again = "/account?project=" + url.QueryEscape(all[0].ProjectID)
	}
	if err := lo.logins.end(r, req.reaches); err != nil {
		return err
	}
	return lo.finish(w, r, req)
}

// home returns where an app lives that people sign in to, as far as its redirect URIs tell:
// it begins a sign-in of its own there.
func home(c idp.Client) string {
	for _, uri := range c.RedirectURIs {
		if u, err := url.Parse(uri); err == nil && (u.Scheme == "https" || u.Scheme == "http") &&
			u.Host != "" && c.Type != idp.Native {
			return u.Scheme + "://" + u.Host + "/"
		}
	}
	return ""
}

// finish takes dead logins out of the browser's cookie and leads back to the
// app, or says that it is done.
func (lo *logout) finish(w http.ResponseWriter, r *http.Request, req logoutRequest) error {
	b, err := lo.browsers.Open(r)
	if err != nil {
		return err
	}
	lo.logins.removeEnded(r, b)
	if len(b.Values()) == 0 {
		err = b.Forget(w, r)
	} else {
		err = b.Renew(w, r)
	}
	if err != nil {
		return err
	}
	if req.redirectTo == "" {
		return lo.write(w, r, templates.LoggedOut{App: req.client.Name, Again: req.again}, templates.Options{})
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
