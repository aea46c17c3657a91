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

// The pages of invalid logout requests: unreadable, of an unknown app, to an unregistered address.
var (
	badLogoutRequest = templates.Error{Title: "error.logout", Text: "error.logout-request",
		Advice: "error.logout-request-advice"}
	badLogoutApp = templates.Error{Title: "error.logout", Text: "error.logout-app",
		Advice: "error.logout-app-advice"}
	badLogoutAddress = templates.Error{Title: "error.logout", Text: "error.logout-address",
		Advice: "error.logout-address-advice"}
)

func badLogout(page templates.Error, cause string) error {
	return &shown{status: http.StatusBadRequest, page: page, cause: cause}
}

// A logoutRequest is a request of RP-Initiated Logout, section 2, verified as far as
// possible.
type logoutRequest struct {
	client     idp.Client // zero if it was left out
	hint       idp.IDHint // zero if it was left out
	redirectTo string     // a registered URI, or ""
	state      string
	again      string // where to sign in again: the app or the account
}

// endSessionByPost serves POST /oauth/logout. The request comes from the client's site
// without our cookies, which are SameSite=Lax. It is redirected to a GET, which brings
// them.
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

// endSession serves GET /oauth/logout:
//
//  1. parse verifies the hint, the client and the redirect URI.
//  2. If the hint names a login of this browser, all logins that its subscriber has made
//     here end. Otherwise the person is asked first.
//  3. finish cleans up the browser's cookie and redirects to the app.
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

// ends returns the logins of a browser that a request ends.
//
// An ID token is no credential: apps pass it on, and old ones lie in logs. Therefore it
// only names a login in the browser where the login was made. There it means all logins
// of that subscriber, since some may be newer than the token.
//
// sure is false if the person must be asked first: there is no hint, or a hint of another
// login, and the answer would end at least one login.
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

// reaches reports whether a confirmed request ends a login of the browser: those in the
// client's project, or all if no client is named.
func (req logoutRequest) reaches(s idp.Login) bool {
	return req.client.ID == "" || req.client.ProjectID == s.ProjectID
}

func (lo *logout) parse(r *http.Request, v url.Values) (req logoutRequest, err error) {
	if checkParams(v) != nil {
		return req, badLogout(badLogoutRequest, "a parameter is repeated, or is not text")
	}

	clientID := v.Get("client_id")
	if raw := v.Get("id_token_hint"); raw != "" {
		hint, ok := lo.Tokens.OpenIDHint(raw)
		if !ok {
			return req, badLogout(badLogoutRequest, "id_token_hint is not an ID token of this server")
		}

		if clientID != "" && clientID != hint.ClientID {
			return req, badLogout(badLogoutRequest,
				"client_id differs from that of id_token_hint, which is "+hint.ClientID)
		}
		req.hint, clientID = hint, hint.ClientID
	}
	if clientID != "" {
		if req.client, err = lo.Clients.Find(r.Context(), clientID); errors.Is(err, problem.NotFound) {
			return req, badLogout(badLogoutApp, noClient)
		} else if err != nil {
			return req, err
		}
		req.hint.SessionID = lo.Subjects.SessionOf(req.client, req.hint.SessionID)
	}

	req.again = home(req.client)
	if m := presentationOf(r); v.Get("ui_locales") != "" {
		m.locales = v.Get("ui_locales")
	}
	presentationOf(r).client = req.client

	req.redirectTo, req.state = v.Get("post_logout_redirect_uri"), v.Get("state")
	if req.redirectTo != "" && req.client.ID == "" {
		return req, badLogout(badLogoutApp, "post_logout_redirect_uri needs a client_id or an id_token_hint")
	}
	if req.redirectTo != "" && !req.client.AllowsLogoutTo(req.redirectTo) {
		return req, badLogout(badLogoutAddress, "post_logout_redirect_uri is not one of those registered for client "+
			req.client.ID+known(req.client.LogoutURIs))
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

// showLogout serves GET /logout, the page to sign out without an app.
func (lo *logout) showLogout(w http.ResponseWriter, r *http.Request) error {
	return lo.confirmPage(w, r, logoutRequest{})
}

// logOut serves POST /logout, the confirmation page. It ends all logins made in the
// browser in the client's project, whoever made them, or all of them if no client is
// named. It never touches a login of another browser, whatever was hinted.
func (lo *logout) logOut(w http.ResponseWriter, r *http.Request) error {
	form, err := lo.pageForm(w, r)
	if err != nil {
		return err
	}

	form.Del("token")
	form.Del("id_token_hint") // the person has answered, so the hint no longer matters
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

// home returns the address of an app that people sign in to, as far as its redirect URIs
// tell. The app starts a login of its own there.
func home(c idp.Client) string {
	for _, uri := range c.RedirectURIs {
		if u, err := url.Parse(uri); err == nil && (u.Scheme == "https" || u.Scheme == "http") &&
			u.Host != "" && c.Type != idp.Native {
			return u.Scheme + "://" + u.Host + "/"
		}
	}
	return ""
}

// finish removes ended logins from the browser's cookie and redirects to the app, or
// shows that the person is signed out.
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
