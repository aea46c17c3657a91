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

// An app in a browser can ask a page of ours, in a frame, whether the browser's logins have changed
// since the app was last here (OpenID Connect Session Management 1.0):
//
//   - A cookie that scripts can read has the browser state, a digest of the browser's logins.
//   - An authorization response has a session_state, a salted digest of the client, its origin and
//     the browser state.
//   - The page in the frame computes the session_state again and compares the two.
//
// A browser that blocks the cookie in frames of other sites gets the answer "error", so that the app
// does not sign in again and again.

// sessionPath is the path of the page that apps load in a frame.
const sessionPath = "/oauth/check-session"

// browserState returns the state of a browser. It changes with the browser's logins and reveals
// nothing about them.
func (pg *pages) browserState(b *web.Browser) string {
	values := b.Values()
	projects := make([]string, 0, len(values))
	for project := range values {
		projects = append(projects, project)
	}
	slices.Sort(projects)

	key := pg.Ring.Derive("browser state")
	mac := hmac.New(sha256.New, key[:])
	for _, project := range projects {
		mac.Write([]byte(project + " " + values[project] + "\n"))
	}
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:16])
}

// writeBrowserState sets the cookie with the state of a browser, unless the browser has it already.
func (pg *pages) writeBrowserState(w http.ResponseWriter, r *http.Request, b *web.Browser) (state string) {
	if state = pg.browserState(b); pg.cookies.BrowserState(r) != state {
		pg.cookies.SetBrowserState(w, r, state)
	}
	return state
}

// sessionState returns the session_state of a response to a request, or "" for requests without an
// ID token or without a web origin (OpenID Connect Session Management 1.0, section 3).
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

// showCheckSession serves GET /oauth/check-session, which any site may frame. It shows nothing.
func (pg *pages) showCheckSession(w http.ResponseWriter, r *http.Request) error {
	return pg.write(w, r, templates.CheckSession{}, templates.Options{Scripts: true, Framer: "*"})
}
