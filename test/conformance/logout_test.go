package conformance

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/go-jose/go-jose/v4"

	"github.com/selvage/selvage/test/harness"
)

// endSession signs in, and opens the end_session_endpoint with the parameters that the plan sends:
// the ID token, the return address and a long state. If alter is not nil, it changes these
// parameters first.
func (m *module) endSession(alter func(url.Values)) (page harness.Page, state string) {
	m.Helper()
	s := m.request("state", longState()).flow()
	v := url.Values{"id_token_hint": {s.IDToken}, "post_logout_redirect_uri": {logoutURI}, "state": {longState()}}
	if alter != nil {
		alter(v)
	}
	return m.browser.Open(m, m.op.endpoint(m, "end_session_endpoint")+"?"+v.Encode()), v.Get("state")
}

// wantLoggedOut checks that a silent login fails because the login has ended.
func (m *module) wantLoggedOut() {
	m.Helper()
	r := m.request("prompt", "none", "state", longState())
	r.wantError(m.parameters(m.browser.Open(m, r.url())), uiErrors...)
}

// wantReturn checks that the browser was redirected with no parameter except the state.
func (m *module) wantReturn(p harness.Page, state string) {
	m.Helper()
	v := p.Callback(m)
	back := *p.Left
	back.RawQuery = ""
	m.check(back.String() == logoutURI, "the browser was sent to %s, want %s", p.Left, logoutURI)
	m.check(v.Get("state") == state, "state = %q, want %q", v.Get("state"), state)
	if err := only(v, "state"); err != nil {
		m.Errorf("the redirect has wrong parameters: %v", err)
	}
	m.check(state != "" || !v.Has("state"), "the redirect has a state, although the request had none")
}

func logout(m *module) {
	m.wantReturn(m.endSession(nil))
	m.wantLoggedOut()
}

func logoutNoState(m *module) {
	m.wantReturn(m.endSession(func(v url.Values) { v.Del("state") }))
	m.wantLoggedOut()
}

// wantStays checks that a logout does not redirect the browser, but ends with an error page or a
// confirmation page.
func (m *module) wantStays(alter func(url.Values)) {
	m.Helper()
	p, _ := m.endSession(alter)
	if p.Left != nil {
		m.Fatalf("the browser was sent to %s, want no redirect", p.Left)
	}
	if !p.Has("logout-confirm") {
		p.WantErrorPage(m, 400)
	}
}

func logoutBadURI(m *module) {
	m.wantStays(func(v url.Values) {
		v.Set("post_logout_redirect_uri", "https://rp.example/bad_post_logout_redirect_uri")
	})
}

func logoutQueryAdded(m *module) {
	m.wantStays(func(v url.Values) { v.Set("post_logout_redirect_uri", logoutURI+"?foo=bar") })
}

func logoutNoHint(m *module) {
	m.wantStays(func(v url.Values) { v.Del("id_token_hint") })
}

// logoutModifiedHint replaces the hint's signature with the algorithm none.
func logoutModifiedHint(m *module) {
	m.wantStays(func(v url.Values) {
		header := base64.RawURLEncoding.EncodeToString([]byte(`{"alg": "none"}`))
		v.Set("id_token_hint", header+"."+strings.Split(v.Get("id_token_hint"), ".")[1]+".")
	})
}

// logoutBadHint signs the hint's claims with a different key.
func logoutBadHint(m *module) {
	m.wantStays(func(v url.Values) {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			m.Fatal(err)
		}

		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256,
			Key: jose.JSONWebKey{Key: key, KeyID: m.op.keys.Keys[0].KeyID}}, nil)
		if err != nil {
			m.Fatal(err)
		}

		claims, err := json.Marshal(m.verify(v.Get("id_token_hint"), jose.RS256))
		if err != nil {
			m.Fatal(err)
		}

		sig, err := signer.Sign(claims)
		if err != nil {
			m.Fatal(err)
		}
		hint, err := sig.CompactSerialize()
		if err != nil {
			m.Fatal(err)
		}

		v.Set("id_token_hint", hint)
	})
}

// wantLogoutPage checks a logout without a return address. The person is signed out, and a page
// says so. If no hint identifies the person, a confirmation page is shown first.
func (m *module) wantLogoutPage(alter func(url.Values)) {
	m.Helper()
	p, _ := m.endSession(alter)
	if p.Has("logout-confirm") {
		p = m.browser.Submit(m, p, "logout-confirm", nil)
	}
	if p.Left != nil || !p.Has("logged-out") || !strings.Contains(string(p.Body), "You are signed out") {
		m.Fatalf("the logout ended at %d %s", p.Status, p.URL)
	}
	m.wantLoggedOut()
}

func logoutNoURI(m *module) {
	m.wantLogoutPage(func(v url.Values) { v.Del("post_logout_redirect_uri") })
}

func logoutNoParams(m *module) {
	m.wantLogoutPage(func(v url.Values) { clear(v) })
}

func logoutOnlyState(m *module) {
	m.wantLogoutPage(func(v url.Values) { v.Del("post_logout_redirect_uri"); v.Del("id_token_hint") })
}
