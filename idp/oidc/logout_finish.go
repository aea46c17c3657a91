package oidc

import (
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/selvage/selvage/templates"
)

// finish removes ended logins from the browser's cookie and redirects to the app, or shows that the
// person is signed out. If apps have a front-channel logout URI, a page loads these URIs first.
func (lo *logout) finish(w http.ResponseWriter, r *http.Request, req logoutRequest, ended []string) error {
	if err := lo.renewCookie(w, r); err != nil {
		return err
	}
	frames, err := lo.Tokens.FrontchannelLogouts(r.Context(), ended...)
	if err != nil {
		return err
	}
	to := req.target()

	// Show a page with a link to the provider, because the policy of the posted form forbids a redirect.
	if upstream := lo.upstreamLogout(r, ended, to); upstream != "" {
		return lo.showLoggedOut(w, r, req, frames, upstream)
	}
	if to != "" && len(frames) == 0 {
		seeOther(w, to)
		return nil
	}
	return lo.showLoggedOut(w, r, req, frames, to)
}

// renewCookie removes ended logins from the browser's cookie.
func (lo *logout) renewCookie(w http.ResponseWriter, r *http.Request) error {
	b, err := lo.browsers.Open(r)
	if err != nil {
		return err
	}
	lo.logins.removeEnded(r, b)
	renew := b.Renew
	if len(b.Values()) == 0 {
		renew = b.Forget
	}
	if err := renew(w, r); err != nil {
		return err
	}
	lo.writeBrowserState(w, r, b)
	return nil
}

// target returns the URL to which the browser is redirected after the logout, or "".
func (req logoutRequest) target() string {
	if req.redirectTo == "" || req.state == "" {
		return req.redirectTo
	}
	separator := "?"
	if strings.Contains(req.redirectTo, "?") {
		separator = "&"
	}
	return req.redirectTo + separator + url.Values{"state": {req.state}}.Encode()
}

// showLoggedOut shows that the person is signed out, and loads the front-channel logout URIs in
// frames. A script then follows the link to the app. Without scripts, the browser follows the
// link after a few seconds.
func (lo *logout) showLoggedOut(w http.ResponseWriter, r *http.Request, req logoutRequest,
	frames []string, to string) error {
	page := templates.LoggedOut{
		App:      req.client.Name,
		Again:    req.signInURL,
		Frames:   frames,
		Continue: template.URL(to), // a registered URI, perhaps with the scheme of a native app
	}
	options := templates.Options{Scripts: to != ""}
	for _, uri := range frames {
		options.Frames = append(options.Frames, formAction(uri)...)
	}
	slices.Sort(options.Frames)
	options.Frames = slices.Compact(options.Frames)
	if to != "" {
		w.Header().Set("Refresh", "6; url="+to)
	}
	return lo.write(w, r, page, options)
}
