package conformance

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"maps"

	"github.com/selvage/selvage/test/harness"
)

// registeredRedirectURI checks that an unregistered redirect URI is refused.
func registeredRedirectURI(m *module) {
	m.browser.Open(m, m.request("redirect_uri", harness.RedirectURI+"/"+rand.Text()).url()).WantErrorPage(m, 400)
}

// requestURI passes the request by reference. The suite skips the module if the parameter is
// refused as unsupported.
func requestURI(m *module) {
	m.check(m.op.metadata["request_uri_parameter_supported"] == false,
		"request_uri_parameter_supported = %v, want false", m.op.metadata["request_uri_parameter_supported"])
	r := m.request("request_uri", "https://rp.example/request/"+rand.Text())
	r.wantError(m.told(m.browser.Open(m, r.url())), "request_uri_not_supported")
	m.skip("request_uri_not_supported")
}

// requestObject passes the request by value. The server must not ignore the object, but refuse
// it as unsupported.
func requestObject(m *module) {
	m.check(m.op.metadata["request_parameter_supported"] != true, "request_parameter_supported = true")
	r := m.request()
	r.Set("request", unsigned(m, r))
	r.wantError(m.told(m.browser.Open(m, r.url())), "request_not_supported")

	// As in the suite, state, nonce and response_mode are only in the object. The response must come in
	// that mode.
	whole := m.request()
	bare := request{m, whole.client, maps.Clone(whole.Values)}
	bare.Set("request", unsigned(m, whole))
	for _, name := range []string{"state", "nonce", "response_mode"} {
		bare.Del(name)
	}
	whole.wantError(m.told(m.browser.Open(m, bare.url())), "request_not_supported")
	m.skip("request_not_supported")
}

// requestObjectRedirectURI sends a valid redirect URI in the object and an invalid one as a
// parameter. The result must be an error page, since objects are not read.
func requestObjectRedirectURI(m *module) {
	r := m.request()
	r.Set("request", unsigned(m, r))
	r.Set("redirect_uri", harness.RedirectURI+"/"+rand.Text())
	m.browser.Open(m, r.url()).WantErrorPage(m, 400)
}

// unsigned returns a request as an unsigned request object.
func unsigned(m *module, r request) string {
	m.Helper()
	claims := map[string]string{}
	for name := range r.Values {
		claims[name] = r.Get(name)
	}
	text, err := json.Marshal(claims)
	if err != nil {
		m.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." +
		base64.RawURLEncoding.EncodeToString(text) + "."
}
