package conformance

import (
	"crypto/rand"
	"encoding/base64"
	"maps"

	"github.com/selvage/selvage/test/harness"
)

// registeredRedirectURI checks that an unregistered redirect URI is refused.
func registeredRedirectURI(m *module) {
	m.browser.Open(m, m.request("redirect_uri", harness.RedirectURI+"/"+rand.Text()).url()).WantErrorPage(m, 400)
}

// onlySigned skips a module that uses an unsigned request object. The suite also skips it if the
// metadata does not offer unsigned objects.
func (m *module) onlySigned() {
	m.Helper()
	const algs = "request_object_signing_alg_values_supported"
	m.check(!m.op.offers(algs, "none") && m.op.offers(algs, "RS256"), "%s = %v", algs, m.op.metadata[algs])
	m.skip(algs + " does not contain none")
}

// requestURI passes the request by reference. The server must refuse an unregistered address.
func requestURI(m *module) {
	m.check(m.op.metadata["request_uri_parameter_supported"] == true &&
		m.op.metadata["require_request_uri_registration"] == true, "request_uri_parameter_supported = %v",
		m.op.metadata["request_uri_parameter_supported"])
	r := m.request("request_uri", "https://rp.example/request/"+rand.Text())
	r.wantError(m.parameters(m.browser.Open(m, r.url())), "request_uri_not_supported")
	m.onlySigned()
}

// requestObject passes the request by value. The server must refuse the object as unsupported,
// instead of ignoring it.
func requestObject(m *module) {
	r := m.request()
	r.Set("request", unsigned(m, r))
	r.wantError(m.parameters(m.browser.Open(m, r.url())), "request_not_supported")

	// As in the suite, state, nonce and response_mode are only in the object. The response must use
	// that mode.
	whole := m.request()
	bare := request{m: m, client: whole.client, Values: maps.Clone(whole.Values)}
	bare.Set("request", unsigned(m, whole))
	for _, name := range []string{"state", "nonce", "response_mode"} {
		bare.Del(name)
	}
	whole.wantError(m.parameters(m.browser.Open(m, bare.url())), "request_not_supported")
	m.onlySigned()
}

// requestObjectRedirectURI sends a valid redirect URI in the object and an invalid one as a
// parameter. The result must be an error page, because unsigned objects are not read.
func requestObjectRedirectURI(m *module) {
	r := m.request()
	r.Set("request", unsigned(m, r))
	r.Set("redirect_uri", harness.RedirectURI+"/"+rand.Text())
	m.browser.Open(m, r.url()).WantErrorPage(m, 400)
}

// unsigned returns a request as an unsigned request object.
func unsigned(m *module, r request) string {
	m.Helper()
	claims := members{}
	for name := range r.Values {
		claims[name] = r.Get(name)
	}
	return unsignedClaims(m, claims)
}

// unsignedClaims returns a JWT with the algorithm none.
func unsignedClaims(m *module, claims members) string {
	m.Helper()
	return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." +
		base64.RawURLEncoding.EncodeToString(mustJSON(m, claims)) + "."
}
