package conformance

import "testing"

// basicModules are the modules of the plan Basic, in its order. The plan Form Post Basic has the
// same modules.
var basicModules = []entry{
	{"oidcc-server", server},
	{"oidcc-response-type-missing", responseTypeMissing},
	{"oidcc-idtoken-signature", idTokenSignature},
	{"oidcc-idtoken-unsigned", idTokenUnsigned},
	{"oidcc-userinfo-get", userInfoGet},
	{"oidcc-userinfo-post-header", userInfoPostHeader},
	{"oidcc-userinfo-post-body", userInfoPostBody},
	{"oidcc-ensure-request-without-nonce-succeeds-for-code-flow", withoutNonce},
	{"oidcc-scope-profile", scopeProfile},
	{"oidcc-scope-email", scopeEmail},
	{"oidcc-scope-address", scopeAddress},
	{"oidcc-scope-phone", scopePhone},
	{"oidcc-scope-all", scopeAll},
	{"oidcc-alternate-happy-flow", alternateHappyFlow},
	{"oidcc-display-page", withParameter("display", "page")},
	{"oidcc-display-popup", withParameter("display", "popup")},
	{"oidcc-prompt-login", promptLogin},
	{"oidcc-prompt-none-not-logged-in", promptNoneNotLoggedIn},
	{"oidcc-prompt-none-logged-in", promptNoneLoggedIn},
	{"oidcc-max-age-1", maxAge1},
	{"oidcc-max-age-10000", maxAge10000},
	{"oidcc-ensure-request-with-unknown-parameter-succeeds", withParameter("extra", "foobar")},
	{"oidcc-id-token-hint", idTokenHint},
	{"oidcc-login-hint", loginHint},
	{"oidcc-ui-locales", withParameter("ui_locales", "se")},
	{"oidcc-claims-locales", withParameter("claims_locales", "se")},
	{"oidcc-ensure-request-with-acr-values-succeeds", acrValues},
	{"oidcc-codereuse", codeReuse},
	{"oidcc-codereuse-30seconds", codeReuse30Seconds},
	{"oidcc-ensure-registered-redirect-uri", registeredRedirectURI},
	{"oidcc-ensure-post-request-succeeds", byPost},
	{"oidcc-server-client-secret-post", clientSecretPost},
	{"oidcc-request-uri-unsigned-supported-correctly-or-rejected-as-unsupported", requestURI},
	{"oidcc-unsigned-request-object-supported-correctly-or-rejected-as-unsupported", requestObject},
	{"oidcc-claims-essential", claimsEssential},
	{"oidcc-ensure-request-object-with-redirect-uri", requestObjectRedirectURI},
	{"oidcc-refresh-token", refreshToken},
	{"oidcc-ensure-request-with-valid-pkce-succeeds", withPKCE},
}

var plans = []plan{
	{"oidcc-basic-certification-test-plan", "TestBasic", "", basicModules},
	{"oidcc-formpost-basic-certification-test-plan", "TestFormPostBasic", "form_post", basicModules},
	{"oidcc-config-certification-test-plan", "TestConfig", "", []entry{
		{"oidcc-discovery-endpoint-verification", discovery},
	}},
	{"oidcc-rp-initiated-logout-certification-test-plan", "TestRPInitiatedLogout", "", []entry{
		{"oidcc-rp-initiated-logout-discovery-endpoint-verification", logoutDiscovery},
		{"oidcc-rp-initiated-logout", logout},
		{"oidcc-rp-initiated-logout-bad-post-logout-redirect-uri", logoutBadURI},
		{"oidcc-rp-initiated-logout-modified-id-token-hint", logoutModifiedHint},
		{"oidcc-rp-initiated-logout-no-id-token-hint", logoutNoHint},
		{"oidcc-rp-initiated-logout-no-params", logoutNoParams},
		{"oidcc-rp-initiated-logout-no-post-logout-redirect-uri", logoutNoURI},
		{"oidcc-rp-initiated-logout-no-state", logoutNoState},
		{"oidcc-rp-initiated-logout-only-state", logoutOnlyState},
		{"oidcc-rp-initiated-logout-query-added-to-post-logout-redirect-uri", logoutQueryAdded},
		{"oidcc-rp-initiated-logout-bad-id-token-hint", logoutBadHint},
	}},
	{"oidcc-backchannel-rp-initiated-logout-certification-test-plan", "TestBackChannelLogout", "", []entry{
		{"oidcc-backchannel-logout-discovery-endpoint-verification", backchannelDiscovery},
		{"oidcc-backchannel-rp-initiated-logout", backchannelLogout},
	}},
	{"oidcc-frontchannel-rp-initiated-logout-certification-test-plan", "TestFrontChannelLogout", "", []entry{
		{"oidcc-frontchannel-logout-discovery-endpoint-verification", frontchannelDiscovery},
		{"oidcc-frontchannel-rp-initiated-logout", frontchannelLogout},
	}},
	{"oidcc-session-management-certification-test-plan", "TestSessionManagement", "", []entry{
		{"oidcc-session-management-discovery-endpoint-verification", sessionDiscovery},
		{"oidcc-session-management-rp-initiated-logout", sessionLogout},
	}},
}

func TestBasic(t *testing.T)              { plans[0].run(t, newProvider(t)) }
func TestFormPostBasic(t *testing.T)      { plans[1].run(t, newProvider(t)) }
func TestConfig(t *testing.T)             { plans[2].run(t, newProvider(t)) }
func TestRPInitiatedLogout(t *testing.T)  { plans[3].run(t, newProvider(t)) }
func TestBackChannelLogout(t *testing.T)  { plans[4].run(t, newProvider(t)) }
func TestFrontChannelLogout(t *testing.T) { plans[5].run(t, newProvider(t)) }
func TestSessionManagement(t *testing.T)  { plans[6].run(t, newProvider(t)) }
