package oidc

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"slices"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/templates"
)

// An app in a browser can find out whether the browser's logins have changed since its last
// request. For this, it loads a page of the provider in a frame (OpenID Connect Session Management
// 1.0):
//
//   - A cookie that scripts can read contains the browser state, a digest of the browser's
//     logins.
//   - An authorization response contains session_state, a salted digest of the client, its origin
//     and the browser state.
//   - The page in the frame computes session_state again and compares the two values.
//
// If the browser blocks the cookie in frames on other sites, the page answers "error". Otherwise
// the app would sign in again and again.

// sessionPath is the path of the page that apps load in a frame.
const sessionPath = "/oauth/check-session"

// browserState returns a digest of a browser's logins. It changes when the logins change, and
// reveals nothing about them.
func (pg *pages) browserState(b *web.Browser) string {
	values := b.Values()
	projects := make([]string, 0, len(values))
	for project := range values {
		projects = append(projects, project)
	}
	slices.Sort(projects)

	key := pg.Ring.DeriveFirst("browser state")
	mac := hmac.New(sha256.New, key[:])
	for _, project := range projects {
		mac.Write([]byte(project + " " + values[project] + "\n"))
	}
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:16])
}

// writeBrowserState returns the state of a browser. It sets the cookie with this state, unless the
// browser already has the cookie.
func (pg *pages) writeBrowserState(w http.ResponseWriter, r *http.Request, b *web.Browser) (state string) {
	state = pg.browserState(b)
	if pg.cookies.BrowserState(r) != state {
		pg.cookies.SetBrowserState(w, r, state)
	}
	return state
}

// sessionState returns the session_state for a response (OpenID Connect Session Management 1.0,
// section 3). It is "" if the request does not ask for an ID token or has no web origin.
func (f *flow) sessionState(w http.ResponseWriter, r *http.Request, req idp.AuthRequest) (string, error) {
	origin := req.Origin()
	if origin == "" || !slices.Contains(req.Scope, "openid") {
		return "", nil
	}
	b, err := f.browsers.Open(r)
	if err != nil {
		return "", err
	}

	salt := rand.Text()
	text := req.ClientID + " " + origin + " " + f.writeBrowserState(w, r, b) + " " + salt
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:]) + "." + salt, nil
}

// showCheckSession serves GET /oauth/check-session, which any site may load in a frame. The page
// shows nothing.
func (pg *pages) showCheckSession(w http.ResponseWriter, r *http.Request) error {
	return pg.write(w, r, templates.CheckSession{}, templates.Options{Scripts: true, Framer: "*"})
}
