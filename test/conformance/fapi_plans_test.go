package conformance

import "testing"

// These are the ways in which clients authenticate in the plan FAPI 2.0 Security Profile. proving
// lists the ways with DPoP proofs. keyed lists the ways with client assertions.
var (
	ways    = []string{byKey + "+" + byDPoP, byKey + "+" + byTLS, byTLS + "+" + byDPoP, byTLS + "+" + byTLS}
	proving = []string{byKey + "+" + byDPoP, byTLS + "+" + byDPoP}
	keyed   = []string{byKey + "+" + byDPoP, byKey + "+" + byTLS}
)

func TestFAPISecurityProfile(t *testing.T) { plans[13].run(t, newBankProvider(t, ways)) }
func TestFAPIMessageSigning(t *testing.T) {
	plans[14].run(t, newBankProvider(t, ways, messageSigning...))
}

// messageSigning lists the flags of clients in the plan FAPI 2.0 Message Signing.
var messageSigning = []string{"--require-signed-request-object", "--authorization-signed-response-alg", "ES256"}

// fapi returns modules with the prefix that their names have in the suite.
func fapi(modules []entry) (all []entry) {
	for _, e := range modules {
		e.name = "fapi2-security-profile-final-" + e.name
		all = append(all, e)
	}
	return all
}

// securityModules are the modules that both plans have, in the order of the plan FAPI 2.0 Security
// Profile.
var securityModules = []entry{
	{"discovery-end-point-verification", fapiDiscovery, nil},
	{"happy-flow", bankFlow, nil},
	{"user-rejects-authentication", userRejects, nil},
	{"ensure-authorization-request-without-state-success", transferred("state", ""), nil},
	{"ensure-authorization-request-without-nonce-success", transferred("nonce", ""), nil},
	{"ensure-authorization-request-with-64-char-nonce-success",
		transferred("nonce", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789ABCDEF"), nil},
	{"ensure-other-scope-order-succeeds", transferred("scope", "email profile openid"), nil},
	{"test-claims-parameter-identity-claims", identityClaims, nil},
	{"access-token-type-header-case-sensitivity", headerCase, nil},
	{"check-dpop-proof-nbf-exp",
		proofWith(func() members { return members{"nbf": inSeconds(0), "exp": inSeconds(300)} }), proving},
	{"ensure-dpopproof-with-iat-10seconds-before-succeeds",
		proofWith(func() members { return members{"iat": inSeconds(-10)} }), proving},
	{"ensure-dpopproof-with-iat-10seconds-after-succeeds",
		proofWith(func() members { return members{"iat": inSeconds(10)} }), proving},
	{"ensure-mismatched-dpop-jkt-fails", keysDiffer, proving},
	{"ensure-token-endpoint-fails-with-mismatched-dpop-proof-jkt", boundCode(true, false), proving},
	{"ensure-token-endpoint-fails-with-mismatched-dpop-jkt", boundCode(false, false), proving},
	{"ensure-dpopproof-at-par-endpoint-binding-success", boundCode(true, true), proving},
	{"ensure-dpop-auth-code-binding-success", boundCode(false, true), proving},
	{"ensure-different-nonce-inside-and-outside-request-object", otherOutside("nonce"), nil},
	{"ensure-different-state-inside-and-outside-request-object", otherOutside("state"), nil},
	{"ensure-authorization-request-with-long-nonce", longParameter("nonce"), nil},
	{"ensure-authorization-request-with-long-state", longParameter("state"), nil},
	{"state-only-outside-request-object-not-used", stateOnlyOutside, nil},
	{"ensure-request-object-without-redirect-uri-fails", pushRefused(wrongRequest, "redirect_uri", ""), nil},
	{"plain-fapi-tolerate-unregistered-redirect-uri",
		pushRefused(wrongRequest, "redirect_uri", "https://rp.example/unregistered"), nil},
	{"ensure-unsigned-authorization-request-without-using-par-fails", notPushed, nil},
	{"ensure-redirect-uri-in-authorization-request", redirectURIOmitted, nil},
	{"ensure-response-type-code-idtoken-fails", pushRefused(wrongType, "response_type", "code id_token"), nil},
	{"ensure-response-type-token-fails", pushRefused(wrongType, "response_type", "token"), nil},
	{"ensure-client-id-in-token-endpoint", otherClientID, nil},
	{"ensure-holder-of-key-required", holderRequired, nil},
	{"ensure-authorization-code-is-bound-to-client", codeOfOther, nil},
	{"attempt-reuse-authorization-code-after-one-second", codeAgain, nil},
	{"ensure-token-endpoint-fails-with-expired-auth-code", codeExpired, nil},
	{"ensure-signed-client-assertion-with-RS256-fails", assertionRS256, keyed},
	{"ensure-client-assertion-in-token-endpoint", assertionMissing, keyed},
	{"ensure-client-assertion-with-exp-is-5-minutes-in-past-fails",
		tokenAssertion(claims(func() members { return members{"exp": inSeconds(-300)} })), keyed},
	{"ensure-client-assertion-with-wrong-aud-fails",
		tokenAssertion(fixed(members{"aud": "https://elsewhere.example/"})), keyed},
	{"ensure-client-assertion-with-no-sub-fails",
		tokenAssertion(fixed(members{"sub": nil})), keyed},
	{"dpop-negative-tests", wrongProofs, proving},
	{"refresh-token", bankRefresh, nil},
	{"par-ensure-reused-request-uri-prior-to-auth-completion-succeeds", referenceBefore, nil},
	{"par-attempt-reuse-request_uri", referenceAgain, nil},
	{"par-attempt-to-use-expired-request_uri", referenceExpired, nil},
	{"par-ensure-jwt-client-assertions-nbf-8-seconds-in-the-future-is-accepted",
		pushAssertion(201, claims(func() members { return members{"nbf": inSeconds(8)} })), keyed},
	{"par-ensure-jwt-client-assertions-nbf-over-60-seconds-in-the-future-fails",
		pushAssertion(401, claims(func() members {
			return members{"nbf": inSeconds(65), "exp": inSeconds(125)}
		})), keyed},
	{"par-attempt-to-use-request_uri-for-different-client", referenceOfOther, nil},
	{"par-authorization-request-containing-request_uri-form-param", referencePushed, nil},
	{"par-attempt-invalid-http-method", wrongMethods, nil},
	{"par-ensure-pkce-required", pushRefused(wrongRequest, "code_challenge", "", "code_challenge_method", ""), nil},
	{"ensure-pkce-code-verifier-required", redeemRefused(""), nil},
	{"incorrect-pkce-code-verifier-rejected", redeemRefused("0123456789abcdef0123456789abcdef0123456789abcdef"), nil},
	{"par-plain-pkce-rejected", pushRefused(wrongRequest, "code_challenge_method", "plain"), nil},
	{"par-without-duplicate-parameters", transferred(), nil},
	{"par-test-array-as-audience-fails",
		pushAssertion(401, func(op *provider) members { return members{"aud": []string{op.Issuer()}} }), keyed},
	{"par-test-par-endpoint-url-as-audience-fails",
		pushAssertion(401, func(op *provider) members { return members{"aud": op.Issuer() + "oauth/par"} }), keyed},
	{"par-test-token-endpoint-url-as-audience-fails",
		pushAssertion(401, func(op *provider) members { return members{"aud": op.Issuer() + "oauth/token"} }), keyed},
}

// signingModules are the modules that only the plan FAPI 2.0 Message Signing has.
var signingModules = []entry{
	{"ensure-request-object-with-multiple-aud-succeeds", object(201, func(op *provider) members {
		return members{"aud": []string{op.Issuer(), "https://elsewhere.example/"}}
	}), nil},
	{"ensure-request-object-with-nbf-8-seconds-in-the-future-is-accepted",
		object(201, claims(func() members { return members{"nbf": inSeconds(8)} })), nil},
	{"ensure-request-object-without-exp-fails", object(400, fixed(members{"exp": nil})), nil},
	{"ensure-request-object-without-nbf-fails", object(400, fixed(members{"nbf": nil})), nil},
	{"ensure-expired-request-object-fails",
		object(400, claims(func() members { return members{"exp": inSeconds(-300), "nbf": inSeconds(-600)} })), nil},
	{"ensure-request-object-with-bad-aud-fails",
		object(400, fixed(members{"aud": "https://elsewhere.example/"})), nil},
	{"ensure-request-object-with-exp-over-60-fails",
		object(400, claims(func() members { return members{"exp": inSeconds(70 * 60)} })), nil},
	{"ensure-request-object-with-nbf-over-60-fails",
		object(400, claims(func() members { return members{"nbf": inSeconds(-70 * 60)} })), nil},
	{"ensure-signed-request-object-with-RS256-fails", objectRS256, nil},
	{"ensure-request-object-signature-algorithm-is-not-none", objectBy(noneObject), nil},
	{"ensure-request-object-with-invalid-signature-fails", objectBy(altered), nil},
	{"ensure-matching-key-in-authorization-request", objectBy(signedBySecond), nil},
	{"ensure-unsigned-request-at-par-endpoint-fails", unsignedPush, nil},
	{"par-authorization-request-containing-request_uri",
		object(400, fixed(members{"request_uri": "urn:ietf:params:oauth:request_uri:x"})), nil},
}
