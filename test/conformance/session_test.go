package conformance

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"

	"github.com/selvage/selvage/test/harness"
)

// sessionDiscovery checks the metadata of OpenID Connect Session Management 1.0, section 3.3.
func sessionDiscovery(m *module) {
	get, doc := m.public()
	m.wantEndpoints(doc, "end_session_endpoint", "check_session_iframe")
	frame, _ := doc["check_session_iframe"].(string)
	a := get(frame).Want(m, 200)
	m.check(a.Header.Get("X-Frame-Options") == "" &&
		strings.Contains(a.Header.Get("Content-Security-Policy"), "frame-ancestors *"),
		"other sites may not frame check_session_iframe: %v", a.Header)
}

// sessionLogout signs out through the client and compares the session_state before and after, as
// check_session_iframe does. In test/clients, oidc-client-ts does the same in Chromium.
func sessionLogout(m *module) {
	r := m.request("state", longState())
	v := r.answer()
	state := v.Get("session_state")
	login := r.redeem(r.form(r.code(v)))
	m.check(m.isUnchanged(r, state), "the session_state %q has changed before the logout", state)

	m.browser.Open(m, m.op.endpoint(m, "end_session_endpoint")+"?"+
		url.Values{"id_token_hint": {login.IDToken}}.Encode())
	m.check(!m.isUnchanged(r, state), "the session_state %q has not changed after the logout", state)
	m.wantLoggedOut()
}

// isUnchanged computes a session_state from the browser's cookie (section 3.2) and compares it with
// state.
func (m *module) isUnchanged(r request, state string) bool {
	m.Helper()
	digest, salt, _ := strings.Cut(state, ".")
	frame, err := url.Parse(m.op.endpoint(m, "check_session_iframe"))
	if err != nil {
		m.Fatal(err)
	}

	for _, c := range m.browser.Jar.Cookies(frame) {
		if strings.HasSuffix(c.Name, "selvage-state") {
			origin := strings.TrimSuffix(harness.RedirectURI, "/cb")
			sum := sha256.Sum256([]byte(r.client.ID + " " + origin + " " + c.Value + " " + salt))
			return hex.EncodeToString(sum[:]) == digest
		}
	}
	m.Fatal("the browser has no cookie with its state")
	return false
}
