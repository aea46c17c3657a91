package conformance

import (
	"slices"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// basicModules are the modules of the plan Basic, in the plan's order. The plan Form Post Basic has
// the same modules.
var basicModules = []entry{
	{"oidcc-server", server, nil},
	{"oidcc-response-type-missing", responseTypeMissing, nil},
	{"oidcc-idtoken-signature", idTokenSignature, nil},
	{"oidcc-idtoken-unsigned", idTokenUnsigned, nil},
	{"oidcc-userinfo-get", userInfoGet, nil},
	{"oidcc-userinfo-post-header", userInfoPostHeader, nil},
	{"oidcc-userinfo-post-body", userInfoPostBody, nil},
	{"oidcc-ensure-request-without-nonce-succeeds-for-code-flow", withoutNonce, nil},
	{"oidcc-scope-profile", scopeProfile, nil},
	{"oidcc-scope-email", scopeEmail, nil},
	{"oidcc-scope-address", scopeAddress, nil},
	{"oidcc-scope-phone", scopePhone, nil},
	{"oidcc-scope-all", scopeAll, nil},
	{"oidcc-alternate-happy-flow", alternateHappyFlow, nil},
	{"oidcc-display-page", withParameter("display", "page"), nil},
	{"oidcc-display-popup", withParameter("display", "popup"), nil},
	{"oidcc-prompt-login", promptLogin, nil},
	{"oidcc-prompt-none-not-logged-in", promptNoneNotLoggedIn, nil},
	{"oidcc-prompt-none-logged-in", promptNoneLoggedIn, nil},
	{"oidcc-max-age-1", maxAge1, nil},
	{"oidcc-max-age-10000", maxAge10000, nil},
	{"oidcc-ensure-request-with-unknown-parameter-succeeds", withParameter("extra", "foobar"), nil},
	{"oidcc-id-token-hint", idTokenHint, nil},
	{"oidcc-login-hint", loginHint, nil},
	{"oidcc-ui-locales", withParameter("ui_locales", "se"), nil},
	{"oidcc-claims-locales", withParameter("claims_locales", "se"), nil},
	{"oidcc-ensure-request-with-acr-values-succeeds", acrValues, nil},
	{"oidcc-codereuse", codeReuse, nil},
	{"oidcc-codereuse-30seconds", codeReuse30Seconds, nil},
	{"oidcc-ensure-registered-redirect-uri", registeredRedirectURI, nil},
	{"oidcc-ensure-post-request-succeeds", byPost, nil},
	{"oidcc-server-client-secret-post", clientSecretPost, nil},
	{"oidcc-request-uri-unsigned-supported-correctly-or-rejected-as-unsupported", requestURI, nil},
	{"oidcc-unsigned-request-object-supported-correctly-or-rejected-as-unsupported", requestObject, nil},
	{"oidcc-claims-essential", claimsEssential, nil},
	{"oidcc-ensure-request-object-with-redirect-uri", requestObjectRedirectURI, nil},
	{"oidcc-refresh-token", refreshToken, nil},
	{"oidcc-ensure-request-with-valid-pkce-succeeds", withPKCE, nil},
}

var plans = []plan{
	{"oidcc-basic-certification-test-plan", "TestBasic", "", basicModules, nil},
	{"oidcc-formpost-basic-certification-test-plan", "TestFormPostBasic", "form_post", basicModules, nil},
	{"oidcc-config-certification-test-plan", "TestConfig", "", []entry{
		{"oidcc-discovery-endpoint-verification", discovery, nil},
	}, nil},
	{"oidcc-rp-initiated-logout-certification-test-plan", "TestRPInitiatedLogout", "", []entry{
		{"oidcc-rp-initiated-logout-discovery-endpoint-verification", logoutDiscovery, nil},
		{"oidcc-rp-initiated-logout", logout, nil},
		{"oidcc-rp-initiated-logout-bad-post-logout-redirect-uri", logoutBadURI, nil},
		{"oidcc-rp-initiated-logout-modified-id-token-hint", logoutModifiedHint, nil},
		{"oidcc-rp-initiated-logout-no-id-token-hint", logoutNoHint, nil},
		{"oidcc-rp-initiated-logout-no-params", logoutNoParams, nil},
		{"oidcc-rp-initiated-logout-no-post-logout-redirect-uri", logoutNoURI, nil},
		{"oidcc-rp-initiated-logout-no-state", logoutNoState, nil},
		{"oidcc-rp-initiated-logout-only-state", logoutOnlyState, nil},
		{"oidcc-rp-initiated-logout-query-added-to-post-logout-redirect-uri", logoutQueryAdded, nil},
		{"oidcc-rp-initiated-logout-bad-id-token-hint", logoutBadHint, nil},
	}, nil},
	{"oidcc-backchannel-rp-initiated-logout-certification-test-plan", "TestBackChannelLogout", "", []entry{
		{"oidcc-backchannel-logout-discovery-endpoint-verification", backchannelDiscovery, nil},
		{"oidcc-backchannel-rp-initiated-logout", backchannelLogout, nil},
	}, nil},
	{"oidcc-frontchannel-rp-initiated-logout-certification-test-plan", "TestFrontChannelLogout", "", []entry{
		{"oidcc-frontchannel-logout-discovery-endpoint-verification", frontchannelDiscovery, nil},
		{"oidcc-frontchannel-rp-initiated-logout", frontchannelLogout, nil},
	}, nil},
	{"oidcc-session-management-certification-test-plan", "TestSessionManagement", "", []entry{
		{"oidcc-session-management-discovery-endpoint-verification", sessionDiscovery, nil},
		{"oidcc-session-management-rp-initiated-logout", sessionLogout, nil},
	}, nil},
	{"oidcc-dynamic-certification-test-plan", "TestDynamic", "", dynamicModules, nil},
	{"oidcc-3rdparty-init-login-certification-test-plan", "TestThirdPartyLogin", "", []entry{
		{"oidcc-3rd_party-init-login", initiateLogin, nil},
		{"oidcc-3rd_party-init-login-nohttps", initiateLoginNoHTTPS, nil},
	}, nil},
	{"oidcc-implicit-certification-test-plan", "TestImplicit", "", implicitModules, implicitTypes},
	{"oidcc-formpost-implicit-certification-test-plan", "TestFormPostImplicit", "form_post", implicitModules,
		implicitTypes},
	{"oidcc-hybrid-certification-test-plan", "TestHybrid", "", hybridModules, hybridTypes},
	{"oidcc-formpost-hybrid-certification-test-plan", "TestFormPostHybrid", "form_post", hybridModules, hybridTypes},
	{"fapi2-security-profile-final-test-plan", "TestFAPISecurityProfile", "", fapi(securityModules), ways},
	{"fapi2-message-signing-final-test-plan", "TestFAPIMessageSigning", "jwt",
		fapi(append(slices.Clone(securityModules), signingModules...)), ways},
}

// These are the response types of the plans Implicit and Hybrid.
var (
	implicitTypes = []string{"id_token", "id_token token"}
	hybridTypes   = []string{"code id_token", "code token", "code id_token token"}
)

// directModules are the modules that the plans Implicit and Hybrid share.
var directModules = []entry{
	{"oidcc-server", server, nil},
	{"oidcc-idtoken-signature", idTokenSignature, nil},
	{"oidcc-ensure-request-without-nonce-fails", nonceMissing,
		[]string{"id_token", "id_token token", "code id_token", "code id_token token"}},
	{"oidcc-scope-profile", scopeProfile, nil},
	{"oidcc-scope-email", scopeEmail, nil},
	{"oidcc-scope-address", scopeAddress, nil},
	{"oidcc-scope-phone", scopePhone, nil},
	{"oidcc-scope-all", scopeAll, nil},
	{"oidcc-alternate-happy-flow", alternateHappyFlow,
		[]string{"id_token", "id_token token", "code id_token", "code id_token token"}},
	{"oidcc-display-page", withParameter("display", "page"), nil},
	{"oidcc-display-popup", withParameter("display", "popup"), nil},
	{"oidcc-prompt-login", promptLogin, nil},
	{"oidcc-prompt-none-not-logged-in", promptNoneNotLoggedIn, nil},
	{"oidcc-prompt-none-logged-in", promptNoneLoggedIn, nil},
	{"oidcc-max-age-1", maxAge1, nil},
	{"oidcc-max-age-10000", maxAge10000, nil},
	{"oidcc-ensure-request-with-unknown-parameter-succeeds", withParameter("extra", "foobar"), nil},
	{"oidcc-id-token-hint", idTokenHint, nil},
	{"oidcc-login-hint", loginHint, nil},
	{"oidcc-ui-locales", withParameter("ui_locales", "se"), nil},
	{"oidcc-claims-locales", withParameter("claims_locales", "se"), nil},
	{"oidcc-ensure-request-with-acr-values-succeeds", acrValues, nil},
	{"oidcc-ensure-registered-redirect-uri", registeredRedirectURI, nil},
	{"oidcc-request-uri-unsigned-supported-correctly-or-rejected-as-unsupported", requestURI, nil},
	{"oidcc-unsigned-request-object-supported-correctly-or-rejected-as-unsupported", requestObject, nil},
	{"oidcc-claims-essential", claimsEssential, nil},
	{"oidcc-ensure-request-object-with-redirect-uri", requestObjectRedirectURI, nil},
}

// implicitModules are the modules of the plan Implicit. The plan Form Post Implicit has the same
// modules.
var implicitModules = append(slices.Clone(directModules), []entry{
	{"oidcc-userinfo-get", userInfoGet, []string{"id_token token"}},
	{"oidcc-userinfo-post-header", userInfoPostHeader, []string{"id_token token"}},
	{"oidcc-userinfo-post-body", userInfoPostBody, []string{"id_token token"}},
	{"oidcc-response-type-missing", responseTypeMissing, []string{"id_token token"}},
}...)

// hybridModules are the modules of the plan Hybrid. The plan Form Post Hybrid has the same modules.
var hybridModules = append(slices.Clone(directModules), []entry{
	{"oidcc-response-type-missing", responseTypeMissing, []string{"code id_token"}},
	{"oidcc-userinfo-get", userInfoGet, nil},
	{"oidcc-userinfo-post-header", userInfoPostHeader, nil},
	{"oidcc-userinfo-post-body", userInfoPostBody, nil},
	{"oidcc-ensure-request-without-nonce-succeeds-for-code-flow", withoutNonce, []string{"code token"}},
	{"oidcc-codereuse", codeReuse, nil},
	{"oidcc-codereuse-30seconds", codeReuse30Seconds, nil},
	{"oidcc-server-client-secret-post", clientSecretPost, nil},
	{"oidcc-refresh-token", refreshToken, nil},
	{"oidcc-ensure-request-with-valid-pkce-succeeds", withPKCE, []string{"code id_token"}},
}...)

// dynamicModules are the modules of the plan Dynamic, in the plan's order.
var dynamicModules = []entry{
	{"oidcc-idtoken-rs256", dynamic(idTokenSignature, members{"id_token_signed_response_alg": "RS256"}), nil},
	{"oidcc-idtoken-unsigned", idTokenUnsigned, nil},
	{"oidcc-userinfo-rs256", userInfoRS256, nil},
	{"oidcc-ensure-redirect-uri-in-authorization-request", redirectURIMissing, nil},
	{"oidcc-redirect-uri-query-OK", redirectURIQuery, nil},
	{"oidcc-redirect-uri-query-mismatch",
		otherRedirectURI(harness.RedirectURI+"?foo=bar", harness.RedirectURI+"?foo=baz"), nil},
	{"oidcc-redirect-uri-query-added", otherRedirectURI(harness.RedirectURI, harness.RedirectURI+"?foo=bar"), nil},
	{"oidcc-redirect-uri-regfrag", redirectURIFragment, nil},
	{"oidcc-discovery-endpoint-verification", dynamicDiscovery, nil},
	{"oidcc-server", dynamic(server, nil), nil},
	{"oidcc-registration-logo-uri", logoURI, nil},
	{"oidcc-registration-policy-uri", linkURI("policy_uri", "brand-privacy"), nil},
	{"oidcc-registration-tos-uri", linkURI("tos_uri", "brand-terms"), nil},
	{"oidcc-registration-jwks-uri", jwksURI, nil},
	{"oidcc-registration-sector-uri", sectorURI(true), nil},
	{"oidcc-registration-sector-bad", sectorURI(false), nil},
	{"oidcc-server-rotate-keys", rotateKeys, nil},
	{"oidcc-refresh-token-rp-key-rotation", keyRotation, nil},
	{"oidcc-request-uri-unsigned", requestURIUnsigned, nil},
	{"oidcc-request-uri-signed-rs256", requestURISigned, nil},
	{"oidcc-ensure-request-object-with-redirect-uri", dynamic(requestObjectRedirectURI, nil), nil},
	{"oidcc-refresh-token", dynamic(refreshToken,
		members{"grant_types": []string{"authorization_code", "refresh_token"}}), nil},
	{"oidcc-ensure-client-assertion-with-iss-aud-succeeds", assertionWithIssuer, nil},
}

func TestBasic(t *testing.T)              { plans[0].run(t, newProvider(t)) }
func TestFormPostBasic(t *testing.T)      { plans[1].run(t, newProvider(t)) }
func TestConfig(t *testing.T)             { plans[2].run(t, newProvider(t)) }
func TestRPInitiatedLogout(t *testing.T)  { plans[3].run(t, newProvider(t)) }
func TestBackChannelLogout(t *testing.T)  { plans[4].run(t, newProvider(t)) }
func TestFrontChannelLogout(t *testing.T) { plans[5].run(t, newProvider(t)) }
func TestSessionManagement(t *testing.T)  { plans[6].run(t, newProvider(t)) }
func TestDynamic(t *testing.T)            { plans[7].run(t, newDynamicProvider(t)) }
func TestThirdPartyLogin(t *testing.T)    { plans[8].run(t, newDynamicProvider(t)) }
func TestImplicit(t *testing.T)           { plans[9].run(t, newTypedProvider(t, implicitTypes)) }
func TestFormPostImplicit(t *testing.T)   { plans[10].run(t, newTypedProvider(t, implicitTypes)) }
func TestHybrid(t *testing.T)             { plans[11].run(t, newTypedProvider(t, hybridTypes)) }
func TestFormPostHybrid(t *testing.T)     { plans[12].run(t, newTypedProvider(t, hybridTypes)) }

// newTypedProvider returns a provider whose clients are registered for the response types in types.
func newTypedProvider(t *testing.T, types []string) *provider {
	t.Helper()
	var flags []string
	for _, kind := range types {
		flags = append(flags, "--response-type", kind)
	}
	return newProviderOf(t, harness.Shared(t), flags...)
}
