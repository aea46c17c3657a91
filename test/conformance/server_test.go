package conformance

import (
	"math"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"

	"github.com/selvage/selvage/test/harness"
)

// server checks a complete login.
func server(m *module) {
	r := m.request()
	v := r.answer()
	if code := v.Get("code"); m.returns("code") {
		m.check(len(code)*8 >= 128, "the code %s is shorter than 128 bits", code)
		m.check(entropy(code) > 96, "the code %s has an entropy of %.0f bits, want more than 96", code, entropy(code))
	}

	s := r.finish(v)
	m.userInfo(s)
	if h := s.claims["at_hash"]; h != nil {
		m.check(h == hashOf(s.AccessToken), "at_hash = %v, want %s", h, hashOf(s.AccessToken))
	}
	if h := s.claims["c_hash"]; h != nil {
		m.check(h == hashOf(v.Get("code")), "c_hash = %v, want %s", h, hashOf(v.Get("code")))
	}
	if err := only(s.claims, "iss", "sub", "aud", "exp", "iat", "auth_time", "nonce", "acr", "amr", "azp",
		"at_hash", "c_hash", "nbf", "jti", "sid", "s_hash", "txn"); err != nil {
		m.Errorf("the ID token contains a claim that was not requested: %v", err)
	}
}

// entropy returns the Shannon entropy of a text in bits, computed as in the suite.
func entropy(s string) float64 {
	counts := map[rune]float64{}
	for _, r := range s {
		counts[r]++
	}
	n, bits := float64(len(s)), 0.0
	for _, c := range counts {
		bits -= c * math.Log2(c/n)
	}
	return bits
}

// responseTypeMissing omits response_type. The provider may show an error page or return an error
// response.
func responseTypeMissing(m *module) {
	r := m.request()
	r.Del("response_type")
	p := m.browser.Open(m, r.url())
	if p.Has("error-page") {
		p.WantErrorPage(m, 400)
		return
	}
	// In the query, which is the default.
	r.wantError(p.Callback(m), "unsupported_response_type", "invalid_request")
}

// idTokenSignature checks that an ID token is signed with RS256 and one of the published keys.
func idTokenSignature(m *module) {
	s := m.request().flow() // verifies RS256 and the key's name
	sig, err := jose.ParseSignedCompact(s.IDToken, []jose.SignatureAlgorithm{jose.RS256})
	if err != nil {
		m.Fatal(err)
	}
	m.check(len(m.op.keys.Key(sig.Signatures[0].Header.KeyID)) == 1,
		"the key set does not contain the key %s exactly once",
		sig.Signatures[0].Header.KeyID)
}

// idTokenUnsigned is skipped, because the provider must not offer the algorithm none, and does not
// offer it.
func idTokenUnsigned(m *module) {
	if m.op.offers("id_token_signing_alg_values_supported", "none") {
		m.Fatal("the metadata offers unsigned ID tokens")
	}
	m.skip("id_token_signing_alg_values_supported does not contain none")
}

// withParameter returns a module that sends a parameter that must have no effect.
func withParameter(name, value string) func(*module) {
	return func(m *module) { m.request(name, value).flow() }
}

// withoutNonce omits the nonce. The suite's module ends with the authorization response. This
// module also redeems the code and checks the tokens.
func withoutNonce(m *module) {
	r := m.request()
	r.Del("nonce")
	r.flow()
}

// nonceMissing omits the nonce where one is required (OpenID Connect Core, sections 3.2.2.1 and
// 3.3.2.11).
func nonceMissing(m *module) {
	r := m.request()
	r.Del("nonce")
	r.wantError(m.parameters(m.browser.Open(m, r.url())), "invalid_request")
}

func clientSecretPost(m *module) {
	m.check(m.op.offers("token_endpoint_auth_methods_supported", "client_secret_post"),
		"the metadata does not offer client_secret_post")
	m.requestOf(m.op.post).flow()
}

// withPKCE sends a code challenge and its verifier.
func withPKCE(m *module) {
	f := m.op.basic.NewFlow("openid")
	r := m.request("code_challenge", harness.Challenge(f.Verifier), "code_challenge_method", "S256")

	form := r.form(r.code(r.answer()))
	form.Set("code_verifier", f.Verifier)
	m.userInfo(r.redeem(form))
}

// byPost sends the authorization request as a form.
func byPost(m *module) {
	r := m.request()
	p := m.browser.Post(m, m.op.endpoint(m, "authorization_endpoint"), r.Values)
	r.finish(m.parameters(m.signIn(p)))
}

// loginHint sends the person's email address as the login_hint. The login page must show it.
func loginHint(m *module) {
	r := m.request("login_hint", m.op.person.Email)
	p := m.browser.Open(m, r.url())
	m.check(strings.Contains(string(p.Body), m.op.person.Email), "the login page does not show the login_hint")
	r.finish(m.parameters(m.signIn(p)))
}

// acrValues requests the acr values that the metadata offers. Like the suite, it warns unless the
// ID token has one of them.
func acrValues(m *module) {
	var offered []string
	list, _ := m.op.metadata["acr_values_supported"].([]any)
	for _, v := range list {
		offered = append(offered, v.(string))
	}
	if len(offered) == 0 {
		offered = []string{"1", "2"}
	}

	s := m.request("acr_values", strings.Join(offered, " ")).flow()
	if acr, _ := s.claims["acr"].(string); !slices.Contains(offered, acr) {
		m.warn("acr = %v is not one of %q", s.claims["acr"], offered)
	}
}
