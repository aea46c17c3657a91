package conformance

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"
	"golang.org/x/text/language"

	"github.com/selvage/selvage/test/harness"
)

// publicOrigin is the public HTTPS origin of the tested provider.
const publicOrigin = "https://op.example"

// public starts a server whose public origin is publicOrigin, as if it were behind a proxy. It
// returns the server's metadata, and get, which fetches a URL below publicOrigin.
func (m *module) public() (get func(where string) harness.Answer, metadata map[string]any) {
	m.Helper()
	s := harness.Start(m, "--public-url", publicOrigin, "--auth-url", publicOrigin)

	get = func(where string) harness.Answer {
		m.Helper()
		u, err := url.Parse(where)
		if err != nil || u.Scheme+"://"+u.Host != publicOrigin {
			m.Fatalf("%q is not a URL of %s", where, publicOrigin)
		}
		return s.Get(m, u.RequestURI(), harness.Header("Host", u.Host), harness.Header("X-Forwarded-Proto", "https"))
	}

	a := get(publicOrigin+"/.well-known/openid-configuration").Want(m, 200)
	m.check(isJSON(a), "Content-Type of the metadata = %q, want application/json", a.Header.Get("Content-Type"))
	return get, a.Object(m)
}

// discovery checks the metadata and the keys (OpenID Connect Discovery, section 3).
func discovery(m *module) {
	get, doc := m.public()
	issuer, _ := doc["issuer"].(string)
	u, err := url.Parse(issuer)
	m.check(err == nil && strings.TrimSuffix(issuer, "/") == publicOrigin && u.RawQuery == "" &&
		u.Fragment == "", "issuer = %q, want %s without query or fragment", issuer, publicOrigin)
	if err := only(doc, knownMetadata...); err != nil {
		m.Errorf("checking the metadata's members: %v", err)
	}

	m.wantEndpoints(doc, "authorization_endpoint", "token_endpoint", "userinfo_endpoint")
	m.wantLists(doc)

	for _, name := range []string{"claims_parameter_supported", "request_parameter_supported",
		"request_uri_parameter_supported", "require_request_uri_registration"} {
		_, isBool := doc[name].(bool)
		m.check(doc[name] == nil || isBool, "%s = %v is not a boolean", name, doc[name])
	}

	for _, name := range []string{"ui_locales_supported", "claims_locales_supported"} {
		for _, locale := range texts(doc[name]) {
			tag, err := language.Parse(locale)
			m.check(err == nil && tag.String() == locale,
				"%s contains %q, which is not a language tag in canonical form", name, locale)
		}
	}

	where, _ := doc["jwks_uri"].(string)
	m.wantKeys(get(where))
}

// logoutDiscovery checks the metadata that RP-Initiated Logout, section 2.1, requires.
func logoutDiscovery(m *module) {
	_, doc := m.public()
	m.wantEndpoints(doc, "end_session_endpoint")
}

// wantEndpoints checks that the named endpoints exist, and that all members named …_endpoint are
// HTTPS URLs.
func (m *module) wantEndpoints(doc map[string]any, names ...string) {
	m.Helper()
	for _, name := range names {
		m.check(doc[name] != nil, "the metadata has no %s", name)
	}
	for name, value := range doc {
		where, _ := value.(string)
		if strings.HasSuffix(name, "_endpoint") {
			u, err := url.Parse(where)
			m.check(err == nil && u.Scheme == "https" && u.Host != "" && u.Fragment == "",
				"%s = %v, want an HTTPS URL without a fragment", name, value)
		}
	}
}

var scopeToken = regexp.MustCompile(`^[\x21\x23-\x5B\x5D-\x7E]+$`) // RFC 6749, appendix A.4

// wantLists checks that the required lists contain the required values, and that all lists are
// valid.
func (m *module) wantLists(doc map[string]any) {
	m.Helper()
	for name, value := range map[string]string{
		"response_types_supported":              "code",
		"subject_types_supported":               "public",
		"id_token_signing_alg_values_supported": "RS256",
		"scopes_supported":                      "openid",
		"grant_types_supported":                 "authorization_code",
		"code_challenge_methods_supported":      "S256",
		"claims_supported":                      "sub",
		"response_modes_supported":              "query",
		"token_endpoint_auth_methods_supported": "client_secret_basic",
	} {
		m.check(slices.Contains(texts(doc[name]), value), "%s = %v, want %q in the list", name, doc[name],
			value)
	}

	for name, value := range doc {
		list, isList := value.([]any)
		if isList {
			m.check(len(list) > 0 && len(texts(value)) == len(list),
				"%s = %v is empty, or contains a value that is not text", name, value)
		}
		if strings.HasSuffix(name, "_alg_values_supported") {
			m.check(isList && !slices.Contains(texts(value), "none"),
				"%s = %v is not a list, or contains \"none\"", name, value)
		}
	}

	for _, scope := range texts(doc["scopes_supported"]) {
		m.check(scopeToken.MatchString(scope), "scopes_supported contains %q, which is not a scope token", scope)
	}

	known := []string{"code", "id_token", "code id_token", "id_token token", "code id_token token", "code token"}
	for _, kind := range texts(doc["response_types_supported"]) {
		m.check(slices.Contains(known, kind), "response_types_supported contains %q, which is not a response type",
			kind)
	}
}

// texts returns the strings in a list.
func texts(v any) (all []string) {
	list, _ := v.([]any)
	for _, e := range list {
		if s, ok := e.(string); ok {
			all = append(all, s)
		}
	}
	return all
}

// wantKeys checks that all keys of a published key set are public and have different key ids.
func (m *module) wantKeys(a harness.Answer) {
	m.Helper()
	var raw struct{ Keys []map[string]any }
	a.Want(m, 200).Read(m, &raw)
	m.check(len(raw.Keys) > 0, "there are no keys")

	var set jose.JSONWebKeySet
	a.Read(m, &set)
	m.check(len(set.Keys) == len(raw.Keys), "the library understands %d of %d published keys, want all",
		len(set.Keys), len(raw.Keys))

	names := map[string]bool{}
	for _, k := range set.Keys {
		m.check(k.KeyID != "" && !names[k.KeyID], "the kid %q is empty, or a duplicate", k.KeyID)
		names[k.KeyID] = true
		m.check(k.Valid() && k.IsPublic(), "the key %s is not a valid public key", k.KeyID)
	}

	for _, k := range raw.Keys {
		for _, private := range []string{"d", "p", "q", "dp", "dq", "qi", "oth", "k"} {
			m.check(k[private] == nil, "the key %v has a private member %s", k["kid"], private)
		}
	}
}

// knownMetadata lists the metadata that the OpenID Foundation's suite knows for OpenID providers.
// The suite warns about unknown metadata.
var knownMetadata = []string{
	"acr_values_supported", "authorization_endpoint", "authorization_response_iss_parameter_supported",
	"authorization_signing_alg_values_supported",
	"backchannel_logout_session_supported",
	"backchannel_logout_supported", "check_session_iframe", "claim_types_supported", "claims_locales_supported",
	"claims_parameter_supported", "claims_supported",
	"code_challenge_methods_supported", "device_authorization_endpoint", "display_values_supported",
	"dpop_signing_alg_values_supported",
	"end_session_endpoint", "frontchannel_logout_session_supported", "frontchannel_logout_supported",
	"grant_types_supported",
	"id_token_signing_alg_values_supported", "introspection_endpoint",
	"introspection_endpoint_auth_methods_supported",
	"introspection_endpoint_auth_signing_alg_values_supported",
	"introspection_signing_alg_values_supported", "issuer", "jwks_uri", "op_policy_uri",
	"op_tos_uri", "prompt_values_supported",
	"pushed_authorization_request_endpoint", "registration_endpoint",
	"request_object_signing_alg_values_supported", "request_parameter_supported",
	"request_uri_parameter_supported", "require_pushed_authorization_requests",
	"require_request_uri_registration", "response_modes_supported",
	"response_types_supported", "revocation_endpoint", "revocation_endpoint_auth_methods_supported",
	"revocation_endpoint_auth_signing_alg_values_supported", "scopes_supported", "service_documentation",
	"subject_types_supported",
	"token_endpoint", "token_endpoint_auth_methods_supported",
	"token_endpoint_auth_signing_alg_values_supported", "ui_locales_supported",
	"userinfo_endpoint", "userinfo_signing_alg_values_supported",
}
