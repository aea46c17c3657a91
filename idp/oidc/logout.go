package oidc

import (
	"errors"
	"net/http"
	"net/url"
	"slices"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/templates"
)

// logout serves the endpoint of RP-Initiated Logout and the pages on which people sign out.
type logout struct {
	*pages
	logins *browserLogins
}

// These are the pages for logout requests that are invalid, name an unknown app, or have an
// unregistered redirect URI.
var (
	badLogoutRequest = templates.Error{
		Title:  "error.logout",
		Text:   "error.logout-request",
		Advice: "error.logout-request-advice",
	}
	badLogoutApp = templates.Error{
		Title:  "error.logout",
		Text:   "error.logout-app",
		Advice: "error.logout-app-advice",
	}
	badLogoutAddress = templates.Error{
		Title:  "error.logout",
		Text:   "error.logout-address",
		Advice: "error.logout-address-advice",
	}
)

func badLogout(page templates.Error, cause string) error {
	return &shown{status: http.StatusBadRequest, page: page, cause: cause}
}

// A logoutRequest is a request as defined in RP-Initiated Logout, section 2. parse has verified its
// fields.
type logoutRequest struct {
	client     idp.Client // zero if omitted
	hint       idp.IDHint // zero if omitted
	redirectTo string     // a registered URI; may be ""
	state      string
	signInURL  string // URL for signing in again: the app or the account page; may be ""
}

// endSessionByPost serves POST /oauth/logout. The browser sends the request from the client's site
// without our cookies, which are SameSite=Lax. The handler therefore redirects to a GET, with which
// the browser sends the cookies.
func (lo *logout) endSessionByPost(w http.ResponseWriter, r *http.Request) error {
	form, err := postForm(w, r)
	if err != nil {
		return err
	}
	query := make(url.Values)
	for _, name := range []string{"id_token_hint", "client_id", "post_logout_redirect_uri", "state", "ui_locales"} {
		if form.Has(name) {
			query.Set(name, form.Get(name))
		}
	}
	seeOther(w, r.URL.Path+"?"+query.Encode())
	return nil
}

// endSession serves GET /oauth/logout:
//
//  1. parse verifies the hint, the client and the redirect URI.
//  2. If the hint names a login of this browser, endSession ends all logins that the hint's
//     subscriber made here. Otherwise it asks the person first.
//  3. finish removes ended logins from the browser, signs the browser out of apps and redirects to
//     the app.
func (lo *logout) endSession(w http.ResponseWriter, r *http.Request) error {
	req, err := lo.parse(r, r.URL.Query())
	if err != nil {
		return err
	}

	all, err := lo.logins.all(r)
	if err != nil {
		return err
	}

	ids, needsConfirmation := req.selectLogins(all)
	if needsConfirmation {
		return lo.confirmPage(w, r, req)
	}
	if err := lo.Logins.End(r.Context(), ids...); err != nil {
		return err
	}
	return lo.finish(w, r, req, ids)
}

// selectLogins returns the ids of the logins that a request ends, out of all logins of the browser.
//
// An ID token is not a credential, because apps pass it on and logs contain old ones. The hint
// therefore counts only in the browser in which its login was made. There it stands for all logins
// of the subscriber, because some may be newer than the token.
//
// The person must be asked first if the hint names no login of the browser, but the confirmed request
// would end at least one.
func (req logoutRequest) selectLogins(all []idp.Login) (ids []string, needsConfirmation bool) {
	hinted := slices.IndexFunc(all, func(login idp.Login) bool {
		return req.hint.SessionID != "" && login.ID == req.hint.SessionID
	})
	if hinted < 0 {
		return nil, slices.ContainsFunc(all, req.endsConfirmed)
	}
	for _, login := range all {
		if login.SubscriberID == all[hinted].SubscriberID {
			ids = append(ids, login.ID)
		}
	}
	return ids, false
}

// endsConfirmed reports whether the request ends a login after the person has confirmed the request. A
// confirmed request ends all logins in the client's project, or all logins if it names no client.
func (req logoutRequest) endsConfirmed(login idp.Login) bool {
	return req.client.ID == "" || req.client.ProjectID == login.ProjectID
}

// parse returns the logout request with these parameters. It also sets the client and the language
// with which the pages of r are shown. If the key of the hint was revoked or deleted, nothing in the hint
// can be verified. parse then ignores the hint, so that the person is asked.
func (lo *logout) parse(r *http.Request, v url.Values) (req logoutRequest, err error) {
	if checkParams(v) != nil {
		return req, badLogout(badLogoutRequest, "a parameter is repeated, or is not text")
	}

	clientID := v.Get("client_id")
	req.redirectTo = v.Get("post_logout_redirect_uri")
	req.state = v.Get("state")
	raw := v.Get("id_token_hint")
	hint, ok := lo.Tokens.OpenIDHint(raw)
	switch {
	case raw == "":
	case ok && clientID != "" && clientID != hint.ClientID:
		return req, badLogout(badLogoutRequest,
			"client_id differs from that of id_token_hint, which is "+hint.ClientID)
	case ok:
		req.hint = hint
		clientID = hint.ClientID
	case !lo.Tokens.IsUnverifiable(raw):
		return req, badLogout(badLogoutRequest, "id_token_hint is not an ID token of this server")
	case clientID == "": // only the ignored hint names the app to return to
		req.redirectTo, req.state = "", ""
	}
	if clientID != "" {
		req.client, err = lo.Clients.Find(r.Context(), clientID)
		if errors.Is(err, problem.NotFound) {
			return req, badLogout(badLogoutApp, noClient)
		}
		if err != nil {
			return req, err
		}
		req.hint.SessionID = lo.Subjects.SessionOf(req.client, req.hint.SessionID)
	}
	req.signInURL = guessHome(req.client)

	presentationOf(r).client = req.client
	if locales := v.Get("ui_locales"); locales != "" {
		presentationOf(r).locales = locales
	}

	if req.redirectTo != "" && req.client.ID == "" {
		return req, badLogout(badLogoutApp, "post_logout_redirect_uri needs a client_id or an id_token_hint")
	}
	if req.redirectTo != "" && !req.client.AllowsLogoutTo(req.redirectTo) {
		return req, badLogout(badLogoutAddress, "post_logout_redirect_uri is not one of those registered for client "+
			req.client.ID+listKnown(req.client.LogoutURIs))
	}
	return req, nil
}

// confirmPage asks the person whether to sign out.
func (lo *logout) confirmPage(w http.ResponseWriter, r *http.Request, req logoutRequest) error {
	fields := make(map[string]string)
	for name, value := range map[string]string{
		"client_id":                req.client.ID,
		"post_logout_redirect_uri": req.redirectTo,
		"state":                    req.state,
	} {
		if value != "" {
			fields[name] = value
		}
	}
	if asked := r.URL.Query().Get("ui_locales"); len(asked) <= maxLocales && asked != "" {
		fields["ui_locales"] = asked
	}

	var options templates.Options
	if req.redirectTo != "" {
		options.FormAction = formAction(req.redirectTo)
	}

	page := templates.Logout{Token: lo.pageToken(w, r), App: req.client.Name, Fields: fields, Cancel: req.signInURL}
	if page.Cancel == "" {
		projectID, err := lo.onlyProject(r)
		if err != nil {
			return err
		}
		brandUnnamed(r, projectID)
		page.Cancel = "/"
		if projectID != "" {
			page.Cancel = accountURL(projectID)
		}
	}
	return lo.write(w, r, page, options)
}

// onlyProject returns the project of all logins in the browser. It returns "" if nobody is logged
// in, or if the logins belong to several projects.
func (lo *logout) onlyProject(r *http.Request) (projectID string, err error) {
	all, err := lo.logins.all(r)
	if err != nil {
		return "", err
	}
	for _, login := range all {
		if projectID != "" && login.ProjectID != projectID {
			return "", nil
		}
		projectID = login.ProjectID
	}
	return projectID, nil
}

// brandUnnamed sets the project whose branding the pages of r have, if r names no app.
func brandUnnamed(r *http.Request, projectID string) {
	if shown := presentationOf(r); shown.client.ProjectID == "" {
		shown.client.ProjectID = projectID
	}
}

// showLogout serves GET /logout, the page for signing out without an app.
func (lo *logout) showLogout(w http.ResponseWriter, r *http.Request) error {
	return lo.confirmPage(w, r, logoutRequest{})
}

// logOut serves POST /logout, the confirmation page. It ends the browser's logins in the client's
// project, no matter who made them. If no client is named, it ends all of the browser's logins. It
// never ends a login in another browser, whatever the hint says.
func (lo *logout) logOut(w http.ResponseWriter, r *http.Request) error {
	form, err := lo.pageForm(w, r)
	if err != nil {
		return err
	}

	form.Del("token")
	form.Del("id_token_hint") // the person has confirmed, so the hint is no longer needed
	req, err := lo.parse(r, form)
	if err != nil {
		return err
	}

	projectID, err := lo.onlyProject(r)
	if err != nil {
		return err
	}
	brandUnnamed(r, projectID)
	if projectID != "" && req.signInURL == "" {
		req.signInURL = accountURL(projectID)
	}

	ended, err := lo.logins.end(r, req.endsConfirmed)
	if err != nil {
		return err
	}
	return lo.finish(w, r, req, ended)
}

// guessHome returns the URL of a web app, guessed from its redirect URIs, or "". The app starts its
// own login there.
func guessHome(c idp.Client) string {
	if c.Type == idp.Native {
		return ""
	}
	for _, uri := range c.RedirectURIs {
		u, err := url.Parse(uri)
		if err != nil || u.Host == "" {
			continue
		}
		if u.Scheme == "https" || u.Scheme == "http" {
			return u.Scheme + "://" + u.Host + "/"
		}
	}
	return ""
}
