package conformance

import (
	"fmt"
	"net/url"
	"time"

	"github.com/selvage/selvage/test/harness"
)

func codeReuse(m *module) { m.reuse(0) }

// codeReuse30Seconds checks that the access token is refused if its code is used twice (RFC 6749,
// section 4.1.2).
func codeReuse30Seconds(m *module) {
	s := m.reuse(30 * time.Second)
	harness.WithinASecond(m, "the access token of a code that was used twice", func() error {
		a := m.op.Get(m, m.op.endpoint(m, "userinfo_endpoint"), harness.Bearer(s.AccessToken))
		if a.Status < 400 || a.Status > 499 {
			return fmt.Errorf("userinfo = %d %s, want 4xx", a.Status, a.Body)
		}
		return nil
	})
}

// reuse redeems a code, waits for the given time, and checks that the code is then refused.
func (m *module) reuse(after time.Duration) signedIn {
	m.Helper()
	r := m.request()
	form := r.form(r.code(r.answer()))
	s := r.redeem(form)
	m.userInfo(s)
	m.await(time.Now().Add(after))
	m.wantTokenError(r.client, form, "invalid_grant")
	return s
}

// wantTokenError posts a token request and checks that it is refused (RFC 6749, section 5.2).
func (m *module) wantTokenError(c *harness.Client, form url.Values, code string) {
	m.Helper()
	a := m.postToken(c, form).WantError(m, 400, code)
	m.check(isJSON(a), "Content-Type of a token error = %q, want application/json", a.Header.Get("Content-Type"))
	members := a.Object(m)
	if err := only(members, "error", "error_description", "error_uri"); err != nil {
		m.Errorf("a token error has unexpected members: %v", err)
	}
	text, _ := members["error_description"].(string)
	m.check(isDescription(text), "error_description = %q contains line breaks or other forbidden characters",
		text)
}

// refreshToken redeems a refresh token of each of two clients. It also checks that the first client
// cannot use the second client's token.
func refreshToken(m *module) {
	m.check(m.op.offers("scopes_supported", "offline_access"), "the metadata does not offer offline_access")
	m.check(m.op.offers("grant_types_supported", "refresh_token"), "the metadata does not offer refresh_token")
	m.signInAndRefresh(m.op.basic)
	last := m.signInAndRefresh(m.op.second)
	m.wantTokenError(m.op.basic, url.Values{
		"grant_type":    {"refresh_token"},
		"refresh_token": {last.RefreshToken},
		"scope":         {"openid offline_access"},
	}, "invalid_grant")
}

// signInAndRefresh signs in with a client and redeems the refresh token once.
func (m *module) signInAndRefresh(c *harness.Client) signedIn {
	m.Helper()
	r := m.requestOf(c, "scope", "openid offline_access", "prompt", "consent")
	first := r.redeem(r.form(r.code(r.answer())))
	m.check(printable(first.RefreshToken),
		"the refresh token %q is empty or contains characters that RFC 6749 forbids", first.RefreshToken)
	m.await(m.moment(first.claims, "iat").Add(time.Second)) // so that the next iat differs

	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {first.RefreshToken}}
	if c == m.op.basic { // the suite sends a scope only for the first client
		form.Set("scope", "openid offline_access")
	}

	again := r
	// A refreshed ID token should have no nonce (OpenID Connect Core, section 12.2).
	again.Values = url.Values{}
	second := again.redeem(form)

	m.check(printable(second.AccessToken) && second.AccessToken != first.AccessToken &&
		entropy(second.AccessToken) > 96, "the access token %q is malformed, not random or not new",
		second.AccessToken)
	m.check(len(second.RefreshToken)*8 >= 128 && entropy(second.RefreshToken) > 96,
		"the refresh token %q is too short, or not random", second.RefreshToken)

	m.check(second.claims["iat"] != first.claims["iat"], "iat is %v after a refresh, as before",
		second.claims["iat"])
	for _, name := range []string{"iss", "sub", "aud", "azp", "auth_time"} {
		m.check(second.claims[name] == first.claims[name], "%s is %v after a refresh and was %v before", name,
			second.claims[name], first.claims[name])
	}
	m.userInfo(second)
	return second
}

// printable reports whether a token is not empty and has only characters that RFC 6749, appendix A,
// allows.
func printable(s string) bool {
	for _, r := range s {
		if r < ' ' || r > '~' {
			return false
		}
	}
	return s != ""
}
