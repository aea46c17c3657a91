// Registers clients of the profile fapi2 with openid-client and with oauth4webapi, and follows FAPI 2.0
// with each client: keys instead of secrets, pushed requests, and tokens bound by DPoP.
import assert from 'node:assert/strict'
import * as client from 'openid-client'
import * as oauth from 'oauth4webapi'
import { settings, visit } from './settings.mjs'

const issuer = new URL(settings.issuer)
const insecure = { [oauth.allowInsecureRequests]: true }
const scope = 'openid email offline_access'

/** Returns a new key, and the metadata of a client that has it. */
async function identity(name) {
  const { privateKey, publicKey } = await oauth.generateKeyPair('ES256')
  const jwk = { ...(await crypto.subtle.exportKey('jwk', publicKey)), kid: name, alg: 'ES256', use: 'sig' }
  const metadata = { client_name: name, profile: 'fapi2', redirect_uris: [settings.redirect_uri], jwks: { keys: [jwk] },
    grant_types: ['authorization_code', 'refresh_token'], token_endpoint_auth_method: 'private_key_jwt', dpop_bound_access_tokens: true }
  return { key: { key: privateKey, kid: name }, metadata }
}

/** Checks what a registration returned, and deletes the client. */
async function end(made) {
  assert.deepEqual([made.profile, made.id_token_signed_response_alg, made.client_secret], ['fapi2', 'ES256', undefined])
  const deleted = await fetch(made.registration_client_uri, { method: 'DELETE', headers: { Authorization: `Bearer ${made.registration_access_token}` } })
  assert.equal(deleted.status, 204)
}

{
  const { key, metadata } = await identity('Parrot')
  const config = await client.dynamicClientRegistration(issuer, metadata, client.PrivateKeyJwt(key), {
    initialAccessToken: settings.token, execute: [client.allowInsecureRequests, client.enableNonRepudiationChecks] })
  const DPoP = client.getDPoPHandle(config, await client.randomDPoPKeyPair('ES256'))
  const pkceCodeVerifier = client.randomPKCECodeVerifier()
  const expectedNonce = client.randomNonce()
  const params = { redirect_uri: settings.redirect_uri, scope, nonce: expectedNonce,
    code_challenge: await client.calculatePKCECodeChallenge(pkceCodeVerifier), code_challenge_method: 'S256' }
  const callback = await visit(await client.buildAuthorizationUrlWithPAR(config, params, { DPoP }))
  const tokens = await client.authorizationCodeGrant(config, callback, { pkceCodeVerifier, expectedNonce, idTokenExpected: true }, undefined, { DPoP })
  assert.equal(tokens.token_type, 'dpop')
  const info = await client.fetchUserInfo(config, tokens.access_token, tokens.claims().sub, { DPoP })
  assert.deepEqual([info.sub, info.email], [settings.sub, settings.email])
  await assert.rejects(client.fetchUserInfo(config, tokens.access_token, info.sub))
  const fresh = await client.refreshTokenGrant(config, tokens.refresh_token, undefined, { DPoP })
  assert.deepEqual([fresh.token_type, fresh.refresh_token], ['dpop', undefined])
  await end(config.clientMetadata())
}

{
  const { key, metadata } = await identity('Owl')
  const as = await oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, insecure))
  const made = await oauth.processDynamicClientRegistrationResponse(
    await oauth.dynamicClientRegistrationRequest(as, metadata, { ...insecure, initialAccessToken: settings.token }))
  const auth = oauth.PrivateKeyJwt(key)
  const DPoP = oauth.DPoP(made, await oauth.generateKeyPair('ES256'))
  const options = { DPoP, ...insecure }
  const verifier = oauth.generateRandomCodeVerifier()
  const params = { client_id: made.client_id, redirect_uri: settings.redirect_uri, response_type: 'code', scope,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier), code_challenge_method: 'S256' }

  // A request that is not pushed is refused.
  const refused = await visit(`${as.authorization_endpoint}?${new URLSearchParams(params)}`)
  assert.equal(refused.searchParams.get('error'), 'invalid_request')

  const pushed = await oauth.processPushedAuthorizationResponse(as, made, await oauth.pushedAuthorizationRequest(as, made, auth, params, options))
  const callback = await visit(`${as.authorization_endpoint}?${new URLSearchParams({ client_id: made.client_id, request_uri: pushed.request_uri })}`)
  const answer = oauth.validateAuthResponse(as, made, callback, oauth.expectNoState)
  const response = await oauth.authorizationCodeGrantRequest(as, made, auth, answer, settings.redirect_uri, verifier, options)
  const tokens = await oauth.processAuthorizationCodeResponse(as, made, response, { requireIdToken: true })
  const { sub } = oauth.getValidatedIdTokenClaims(tokens)
  const info = await oauth.processUserInfoResponse(as, made, sub, await oauth.userInfoRequest(as, made, tokens.access_token, options))
  assert.deepEqual([tokens.token_type, sub, info.email], ['dpop', settings.sub, settings.email])
  await end(made)
}
process.exit(0)
