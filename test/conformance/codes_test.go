package conformance

import (
	"fmt"
	"net/url"
	"time"

	"github.com/selvage/selvage/test/harness"
)

func codeReuse(m *module) { m.reuse(0) }

// codeReuse30Seconds checks that the access token is refused after the code was used twice (RFC
// 6749, section 4.1.2).
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

// reuse redeems a code, waits, and checks that the code is refused the second time.
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
		m.Errorf("the token error: %v", err)
	}
	text, _ := members["error_description"].(string)
	m.check(describes(text), "error_description = %q contains characters that RFC 6749 forbids, or line breaks", text)
}

// refreshToken redeems refresh tokens of two clients. It also checks that the first client cannot
// use the token of the second.
func refreshToken(m *module) {
	m.check(m.op.offers("scopes_supported", "offline_access"), "the metadata does not offer offline_access")
	m.check(m.op.offers("grant_types_supported", "refresh_token"), "the metadata does not offer refresh_token")
	m.refreshed(m.op.basic)
	last := m.refreshed(m.op.second)
	m.wantTokenError(m.op.basic, url.Values{
		"grant_type":    {"refresh_token"},
		"refresh_token": {last.RefreshToken},
		"scope":         {"openid offline_access"},
	}, "invalid_grant")
}

// refreshed signs in to get a refresh token and redeems it once.
func (m *module) refreshed(c *harness.Client) signedIn {
	m.Helper()
	r := m.requestOf(c, "scope", "openid offline_access", "prompt", "consent")
	first := r.redeem(r.form(r.code(r.answer())))
	m.check(printable(first.RefreshToken),
		"the refresh token %q is empty or contains characters that RFC 6749 forbids", first.RefreshToken)
	m.await(m.moment(first.claims, "iat").Add(time.Second)) // the next token then differs

	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {first.RefreshToken}}
	if c == m.op.basic { // the suite sends it only for the first client
		form.Set("scope", "openid offline_access")
	}

	again := r
	// A refreshed ID token should have no nonce (OpenID Connect Core, section 12.2).
	again.Values = url.Values{}
	second := again.redeem(form)

	m.check(printable(second.AccessToken) && second.AccessToken != first.AccessToken &&
		entropy(second.AccessToken) > 96, "the access token %q", second.AccessToken)
	m.check(len(second.RefreshToken)*8 >= 128 && entropy(second.RefreshToken) > 96,
		"the refresh token %q is too short, or not random", second.RefreshToken)

	m.check(second.claims["iat"] != first.claims["iat"], "iat = %v after a refresh is that of the login",
		second.claims["iat"])
	for _, name := range []string{"iss", "sub", "aud", "azp", "auth_time"} {
		m.check(second.claims[name] == first.claims[name], "%s = %v after a refresh, %v before", name,
			second.claims[name], first.claims[name])
	}
	m.userInfo(second)
	return second
}

// printable reports whether a token consists of the characters of RFC 6749, appendix A, and is not
// empty.
func printable(s string) bool {
	for _, r := range s {
		if r < ' ' || r > '~' {
			return false
		}
	}
	return s != ""
}
