package conformance

import (
	"net/url"
	"strings"

	"github.com/selvage/selvage/test/harness"
)

// frontchannelDiscovery checks the metadata of OpenID Connect Front-Channel Logout 1.0, section 3.
func frontchannelDiscovery(m *module) {
	_, doc := m.public()
	m.wantEndpoints(doc, "end_session_endpoint")
	for _, name := range []string{"frontchannel_logout_supported", "frontchannel_logout_session_supported"} {
		m.check(doc[name] == true, "%s = %v, want true", name, doc[name])
	}
}

// frontchannelLogout signs out through the client and checks that the page loads the client's
// front-channel logout URI, and then continues to the client.
func frontchannelLogout(m *module) {
	origin := strings.TrimSuffix(harness.RedirectURI, "/cb")
	m.op = newProviderOf(m.T, harness.Shared(m), "--frontchannel-logout-uri", origin+"/frontchannel_logout",
		"--frontchannel-logout-session-required")
	m.browser = m.op.Browser()

	login := m.request("state", longState()).flow()
	state := longState()
	p := m.browser.Open(m, m.op.endpoint(m, "end_session_endpoint")+"?"+url.Values{
		"id_token_hint":            {login.IDToken},
		"post_logout_redirect_uri": {logoutURI},
		"state":                    {state},
	}.Encode())

	issuer, _ := m.op.metadata["issuer"].(string)
	sid, _ := login.claims["sid"].(string)
	frame, err := url.Parse(p.Attribute(m, "signing-out-0", "src"))
	if err != nil {
		m.Fatal(err)
	}
	m.check(strings.HasPrefix(frame.String(), origin+"/frontchannel_logout?"), "the page loads %s", frame)
	m.check(frame.Query().Get("iss") == issuer, "iss = %q, want %q", frame.Query().Get("iss"), issuer)
	m.check(sid != "" && frame.Query().Get("sid") == sid, "sid = %q, want %q", frame.Query().Get("sid"), sid)

	// The page has a link, a script that follows it, and a header for browsers without scripts.
	back, err := url.Parse(p.Attribute(m, "logout-continue", "href"))
	if err != nil {
		m.Fatal(err)
	}
	m.check(p.Header.Get("Refresh") == "6; url="+back.String(), "Refresh = %q", p.Header.Get("Refresh"))
	m.wantReturn(harness.Page{Answer: p.Answer, Left: back}, state)
	m.wantLoggedOut()
}
