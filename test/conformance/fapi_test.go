package conformance

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/selvage/selvage/test/harness"
)

// fapiDiscovery checks the metadata of FAPI 2.0.
func fapiDiscovery(m *module) {
	for list, value := range map[string]string{
		"response_types_supported":                         "code",
		"code_challenge_methods_supported":                 "S256",
		"token_endpoint_auth_methods_supported":            "private_key_jwt",
		"dpop_signing_alg_values_supported":                "ES256",
		"token_endpoint_auth_signing_alg_values_supported": "PS256",
		"grant_types_supported":                            "authorization_code",
		"scopes_supported":                                 "openid",
	} {
		m.check(m.op.offers(list, value), "%s = %v lacks %s", list, m.op.metadata[list], value)
	}

	m.check(m.op.offers("token_endpoint_auth_methods_supported", "self_signed_tls_client_auth"),
		"mTLS is not offered")
	for name, want := range map[string]any{
		"authorization_response_iss_parameter_supported": true,
		"claims_parameter_supported":                     true,
		"issuer":                                         m.op.Issuer(),
		"pushed_authorization_request_endpoint":          m.op.Issuer() + "oauth/par",
		"tls_client_certificate_bound_access_tokens":     true,
	} {
		m.check(m.op.metadata[name] == want, "%s = %v, want %v", name, m.op.metadata[name], want)
	}

	if m.isSigned() {
		for _, list := range []string{"request_object_signing_alg_values_supported",
			"authorization_signing_alg_values_supported", "introspection_signing_alg_values_supported"} {
			m.check(m.op.offers(list, "ES256") && !m.op.offers(list, "none"), "%s = %v", list, m.op.metadata[list])
		}
		m.check(m.op.offers("response_modes_supported", "jwt"), "the response mode jwt is not offered")
	}
}

// bankFlow signs in with both clients. It also checks that the first client cannot use the second
// client's tokens.
func bankFlow(m *module) {
	first := m.transfer(m.bank()).complete()
	second := m.transfer(m.secondBank()).complete()
	m.resource(m.bank(), first.AccessToken).Want(m, 200)
	m.resource(m.bank(), second.AccessToken).Want(m, 400, 401, 403)
	duplicated(m)
}

func userRejects(m *module) {
	r := m.transfer(m.bank(), "prompt", "consent")
	p := r.visit(r.reference(r.push()))
	p = m.browser.Submit(m, p, "login-submit",
		map[string]string{"username": m.op.person.Email, "password": m.op.person.Password})
	v := r.response(m.browser.Submit(m, p, "consent-deny", nil))
	m.check(v.Get("error") == "access_denied" && !v.Has("code"), "the client received %v", v)
}

// transferred returns a module that runs a complete flow, with params changed in the request.
func transferred(params ...string) func(*module) {
	return func(m *module) { m.transfer(m.bank(), params...).complete() }
}

// longParameter returns a module whose request has a long parameter. The standard would also let a
// provider refuse it.
func longParameter(name string) func(*module) {
	return func(m *module) { m.transfer(m.bank(), name, strings.Repeat("0123456789abcdef", 24)).complete() }
}

// otherOutside returns a module that opens a pushed request and sends a different value of a
// parameter in the URL. The provider must ignore that value.
func otherOutside(name string) func(*module) {
	return func(m *module) {
		r := m.transfer(m.bank())
		p := m.signIn(r.visit(r.reference(r.push()), name, "outside"))
		r.redeem(r.code(r.response(p)))
	}
}

// stateOnlyOutside pushes a request without a state, and opens it with a state in the URL. The
// provider must ignore that state.
func stateOnlyOutside(m *module) {
	r := m.transfer(m.bank(), "state", "")
	uri := r.reference(r.push())
	page := m.signIn(r.visit(uri, "state", "outside"))
	r.code(r.response(page)) // checks that the response has no state
}

// identityClaims requests each claim by its name, in the request's claims parameter.
func identityClaims(m *module) {
	asked := members{}
	for _, name := range slices.Concat(slices.Collect(maps.Values(scopeClaims))...) {
		asked[name] = nil
	}
	r := m.transfer(m.bank(), "claims", string(mustJSON(m, members{"userinfo": asked, "id_token": asked})))
	t := r.complete()
	info := m.resource(r.bank, t.AccessToken).Want(m, 200).Object(m)
	claims := m.verify(t.IDToken, jose.ES256)
	for name := range asked {
		m.check(m.op.offers("claims_supported", name) && info[name] != nil && claims[name] != nil,
			"the claim %s is not offered, or is missing from userinfo %v or the ID token %v", name, info, claims)
	}
}

// headerCase sends an access token whose authorization scheme is in uppercase, lowercase or mixed
// case.
func headerCase(m *module) {
	b, at := m.bank(), m.op.endpoint(m, "userinfo_endpoint")
	t := m.transfer(b).complete()
	schemes := []string{"DPoP", "dpop", "DPOP", "dPoP"}
	if b.bind == byTLS {
		schemes = []string{"Bearer", "bearer", "BEARER"}
	}
	for _, scheme := range schemes {
		options := []harness.Option{harness.Header("Authorization", scheme+" "+t.AccessToken),
			harness.Header(certificateHeader, b.certificate)}
		if b.bind == byDPoP {
			options = append(options, harness.Header("DPoP", m.proof(b, "GET", at, t.AccessToken, nil)))
		}
		m.op.Get(m, at, options...).Want(m, 200)
	}
}

// notPushed opens an authorization request that was not pushed.
func notPushed(m *module) {
	r := m.transfer(m.bank())
	if m.isSigned() {
		v := r.form()
		v.Set("client_id", r.bank.ID)
		r.wantRefusedPage(m.browser.Open(m, r.endpoint()+"?"+v.Encode()), "invalid_request")
		return
	}
	r.wantRefusedPage(m.browser.Open(m, r.endpoint()+"?"+r.Encode()), "invalid_request")
}

// pushRefused returns a module that pushes a request with params. The provider must refuse it with
// one of codes.
func pushRefused(codes []string, params ...string) func(*module) {
	return func(m *module) { m.wantRefused(m.transfer(m.bank(), params...).push(), codes...) }
}

var (
	wrongRequest = []string{"invalid_request", "invalid_request_object"}
	wrongType    = []string{"unsupported_response_type", "invalid_request", "unauthorized_client"}
	wrongClient  = []string{"invalid_client"}
	wrongGrant   = []string{"invalid_grant"}
)

// redirectURIOmitted pushes a request without a redirect URI, and opens the same request in the
// browser.
func redirectURIOmitted(m *module) {
	r := m.transfer(m.bank(), "redirect_uri", "")
	m.wantRefused(r.push(), wrongRequest...)
	r.wantRefusedPage(m.browser.Open(m, r.endpoint()+"?"+r.Encode()), "invalid_request")
}

// otherClientID redeems a code with the client_id of another client.
func otherClientID(m *module) {
	r := m.transfer(m.bank())
	form := r.tokenForm(r.code(r.answer()))
	form.Set("client_id", m.secondBank().ID)
	m.wantRefused(m.token(r.bank, form, nil), "invalid_client", "invalid_grant", "invalid_request")
}

// holderRequired redeems a code without the DPoP proof or certificate that the tokens must be bound
// to.
func holderRequired(m *module) {
	r := m.transfer(m.bank())
	form := r.tokenForm(r.code(r.answer()))
	bare := m.authenticated(r.bank, form)
	codes := []string{"invalid_request", "invalid_grant", "invalid_dpop_proof"}
	if r.bank.bind == byTLS {
		bare, codes = bare[:1], []string{"invalid_client", "invalid_request"} // without the certificate
	}
	m.wantRefused(m.op.Post(m, m.op.endpoint(m, "token_endpoint"), bare...), codes...)
}

// codeOfOther redeems a code as another client.
func codeOfOther(m *module) {
	r := m.transfer(m.bank())
	form := r.tokenForm(r.code(r.answer()))
	other := m.secondBank()
	other.holder = r.bank.holder
	m.wantRefused(m.token(other, form, nil), wrongGrant...)
}

// codeAgain redeems a code twice.
func codeAgain(m *module) {
	r := m.transfer(m.bank())
	form := r.tokenForm(r.code(r.answer()))
	m.token(r.bank, form, nil).Want(m, 200)
	m.await(time.Now().Add(time.Second))
	m.wantRefused(m.token(r.bank, form, nil), wrongGrant...)
}

// bankRefresh refreshes tokens twice with the same refresh token, which must not be rotated.
func bankRefresh(m *module) {
	b := m.bank()
	r := m.transfer(b, "scope", "openid offline_access", "prompt", "consent")
	first := r.redeem(r.code(r.answer()))
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {first.RefreshToken}}
	for range 2 {
		again := r.received(m.token(b, form, nil), "")
		m.check(again.RefreshToken == "" || again.RefreshToken == first.RefreshToken,
			"the refresh token was rotated")
		m.check(again.AccessToken != first.AccessToken, "the refresh returned the first access token again")
		m.resource(b, again.AccessToken).Want(m, 200)
	}
	m.wantRefused(m.token(m.secondBank(), form, nil), wrongGrant...)
	m.wantRefused(m.op.Post(m, m.op.endpoint(m, "token_endpoint"), harness.Form(form)), wrongClient...)
}

// referenceBefore opens a pushed request twice before the login.
func referenceBefore(m *module) {
	r := m.transfer(m.bank())
	uri := r.reference(r.push())
	m.check(r.visit(uri).Has("login-submit"), "the first visit does not show the login page")
	page := m.signIn(r.visit(uri))
	r.redeem(r.code(r.response(page)))
}

// referenceAgain opens a pushed request that has already been answered.
func referenceAgain(m *module) {
	r := m.transfer(m.bank())
	uri := r.reference(r.push())
	r.code(r.response(m.signIn(r.visit(uri))))
	r.wantRefusedPage(r.visit(uri), "invalid_request_uri", "invalid_request")
}

// referenceOfOther opens a pushed request as another client.
func referenceOfOther(m *module) {
	r := m.transfer(m.bank())
	uri := r.reference(r.push())
	r.bank = m.secondBank()
	r.wantRefusedPage(r.visit(uri), "invalid_request_uri", "invalid_request", "invalid_client")
}

// referencePushed pushes a request_uri.
func referencePushed(m *module) {
	r := m.transfer(m.bank())
	form := r.form()
	form.Set("request_uri", r.reference(r.push()))
	m.wantRefused(r.pushForm(form), "invalid_request")
}

// wrongMethods pushes a request with methods other than POST.
func wrongMethods(m *module) {
	r := m.transfer(m.bank())
	for _, method := range []string{http.MethodGet, http.MethodPut} {
		m.op.Do(m, method, m.op.endpoint(m, "pushed_authorization_request_endpoint"),
			m.authenticated(r.bank, r.form())...).Want(m, 400, 405)
	}
}

// redeemRefused returns a module that redeems a code with a wrong verifier, or without a verifier
// if it is empty.
func redeemRefused(verifier string) func(*module) {
	return func(m *module) {
		r := m.transfer(m.bank())
		form := r.tokenForm(r.code(r.answer()))
		form.Set("code_verifier", verifier)
		if verifier == "" {
			form.Del("code_verifier")
		}
		m.wantRefused(m.token(r.bank, form, nil), "invalid_grant", "invalid_request")
	}
}

// duplicated repeats the parameters of the pushed request in the URL, like older clients.
func duplicated(m *module) {
	r := m.transfer(m.bank())
	p := r.visit(r.reference(r.push()), "response_type", "code", "scope", "openid", "state", r.Get("state"))
	r.redeem(r.code(r.response(m.signIn(p))))
}
