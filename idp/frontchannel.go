package idp

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/selvage/selvage/internal/problem"
)

// maxFrames is the maximum number of apps that a logout page signs out in the browser.
const maxFrames = 20

// FrontchannelLogouts returns the URLs that a browser loads to be signed out of the apps that used
// the logins (OpenID Connect Front-Channel Logout 1.0, section 3). Each URL contains iss and sid.
// Apps without a front-channel logout URI have no URL. If there are more than maxFrames URLs, only
// those of the newest logins are returned.
func (ts *Tokens) FrontchannelLogouts(ctx context.Context, sids ...string) (urls []string, err error) {
	if len(sids) == 0 {
		return nil, nil
	}
	uses, err := ts.Store.Logins.LoginClients(ctx, sids)
	if err != nil {
		return nil, fmt.Errorf("finding apps of logins: %w", err)
	}

	for _, use := range uses {
		c, err := ts.clients.Find(ctx, use.ClientID)
		if errors.Is(err, problem.NotFound) {
			continue // deleted in the meantime
		}
		if err != nil {
			return nil, err
		}
		if c.FrontchannelLogoutURI == "" {
			continue
		}

		urls = append(urls, withQuery(c.FrontchannelLogoutURI,
			url.Values{"iss": {ts.Issuer}, "sid": {ts.subjects.SessionFor(c, use.LoginID)}}))
		if len(urls) == maxFrames {
			break
		}
	}
	return urls, nil
}

// withQuery returns uri with the parameters v added to its query. uri must not have a fragment.
func withQuery(uri string, v url.Values) string {
	if strings.Contains(uri, "?") {
		return uri + "&" + v.Encode()
	}
	return uri + "?" + v.Encode()
}

// checkFrontchannel checks that the front-channel logout URI has the origin of a redirect URI
// (OpenID Connect Front-Channel Logout 1.0, section 2).
func (c *Client) checkFrontchannel(found *problems) {
	const param = "frontchannel_logout_uri"
	uri := c.FrontchannelLogoutURI
	if uri == "" {
		if c.FrontchannelLogoutSession {
			found.add("frontchannel_logout_session_required", "a client without a %s receives no logouts", param)
		}
		return
	}

	c.checkURI(found, param, uri)
	origin := originOf(uri)
	for _, redirect := range c.RedirectURIs {
		if origin != "" && originOf(redirect) == origin {
			return
		}
	}
	found.add(param, "%q must have the scheme, host and port of a redirect URI", uri)
}

// originOf returns the origin of an http or https URI in the form that browsers use: its scheme, its
// host in lower case, and its port unless it is the default one (RFC 6454, sections 4 and 6.1). It
// returns "" for any other URI.
func originOf(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return ""
	}
	host := strings.TrimSuffix(strings.ToLower(u.Host), ":")
	if u.Scheme == "https" {
		return "https://" + strings.TrimSuffix(host, ":443")
	}
	return "http://" + strings.TrimSuffix(host, ":80")
}
