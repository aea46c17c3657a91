package conformance

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/selvage/selvage/test/harness"
)

// logoutEvent is the member of the events claim that makes a JWT a logout token (OpenID Connect
// Back-Channel Logout, section 2.4).
const logoutEvent = "http://schemas.openid.net/event/backchannel-logout"

// backchannelDiscovery checks the metadata of section 2.1. Certification requires both features.
func backchannelDiscovery(m *module) {
	_, doc := m.public()
	m.wantEndpoints(doc, "end_session_endpoint")
	for _, name := range []string{"backchannel_logout_supported", "backchannel_logout_session_supported"} {
		m.check(doc[name] == true, "%s = %v, want true", name, doc[name])
	}
}

// backchannelLogout signs out through the client and checks the back-channel logout request that
// the client receives.
func backchannelLogout(m *module) {
	s := harness.StartConfig(m, harness.Config{Env: []string{harness.AllowLocal}})
	// The command that registers the clients also checks the URI.
	s.Backends = append(s.Backends, harness.AllowLocal)

	posts := make(chan *http.Request, 8)
	uri := receive(m, posts)
	m.op = newProviderOf(m.T, s, "--backchannel-logout-uri", uri, "--backchannel-logout-session-required")
	m.browser = s.Browser()

	r := m.request("state", longState())
	login := r.flow()
	state := longState()
	v := url.Values{"id_token_hint": {login.IDToken}, "post_logout_redirect_uri": {logoutURI}, "state": {state}}
	m.wantReturn(m.browser.Open(m, m.op.endpoint(m, "end_session_endpoint")+"?"+v.Encode()), state)

	select {
	case post := <-posts:
		m.wantLogoutToken(r, login, post)
	case <-time.After(time.Minute):
		m.Fatal("the client received no logout token")
	}
	m.wantLoggedOut()
}

// receive serves a back-channel logout URI, sends each request to posts, and returns the URI.
func receive(m *module, posts chan<- *http.Request) string {
	m.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm() // a malformed form has no logout_token
		posts <- r
		w.Header().Set("Cache-Control", "no-store")
	}))
	m.Cleanup(s.Close)
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		m.Fatal(err)
	}
	return "http://localhost:" + port + "/backchannel_logout"
}

// wantLogoutToken checks a logout request and its logout token (sections 2.4 and 2.5).
func (m *module) wantLogoutToken(r request, login signedIn, post *http.Request) {
	m.Helper()
	m.check(post.Method == http.MethodPost &&
		post.Header.Get("Content-Type") == "application/x-www-form-urlencoded",
		"the client received %s %s, want a form by POST", post.Method, post.Header.Get("Content-Type"))
	if err := only(post.Form, "logout_token"); err != nil || len(post.PostForm["logout_token"]) != 1 {
		m.Fatalf("the client received %v: %v", post.Form, err)
	}

	claims := m.verify(post.PostForm.Get("logout_token"), jose.RS256)
	m.check(claims["iss"] == m.op.metadata["issuer"], "iss = %v, want %v", claims["iss"], m.op.metadata["issuer"])
	m.check(claims["aud"] == r.client.ID, "aud = %v, want %s", claims["aud"], r.client.ID)
	m.check(time.Since(m.moment(claims, "iat")).Abs() < skew, "iat = %v is not the current time", claims["iat"])
	exp := m.moment(claims, "exp")
	m.check(exp.After(time.Now()) && time.Until(exp) <= 2*time.Minute,
		"exp = %v is in the past, or more than two minutes away", exp)
	jti, _ := claims["jti"].(string)
	m.check(jti != "", "jti = %v, want a string", claims["jti"])

	events, _ := claims["events"].(map[string]any)
	event, isObject := events[logoutEvent].(map[string]any)
	m.check(len(events) == 1 && isObject && len(event) == 0, "events = %v, want only a logout event",
		claims["events"])

	m.check(claims["sub"] == login.sub(), "sub = %v, the ID token has %s", claims["sub"], login.sub())
	m.check(claims["sid"] != nil && claims["sid"] == login.claims["sid"], "sid = %v, the ID token has %v",
		claims["sid"], login.claims["sid"])
	_, hasNonce := claims["nonce"]
	m.check(!hasNonce, "the logout token has a nonce")
}
