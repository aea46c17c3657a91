// Follows FAPI 2.0 with oauth4webapi: a pushed request, an assertion whose audience is the issuer,
// tokens bound by DPoP with nonces, and a refresh token that stays the same. The script also signs
// requests, and verifies signed responses.
import assert from 'node:assert/strict'
import * as oauth from 'oauth4webapi'
import { settings, signingKey, visit } from './settings.mjs'

const insecure = { [oauth.allowInsecureRequests]: true }
const issuer = new URL(settings.issuer)
const as = await oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, insecure))
const client = { client_id: settings.client_id, id_token_signed_response_alg: 'ES256', authorization_signed_response_alg: 'ES256' }
const auth = oauth.PrivateKeyJwt(signingKey)
const DPoP = oauth.DPoP(client, await oauth.generateKeyPair('ES256'))

for (const signed of [false, true]) {
  const verifier = oauth.generateRandomCodeVerifier()
  const state = oauth.generateRandomState()
  const nonce = oauth.generateRandomNonce()
  let params = new URLSearchParams({ client_id: client.client_id, response_type: 'code', redirect_uri: settings.redirect_uri,
    scope: 'openid email offline_access', state, nonce, code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256', ...(signed && { response_mode: 'jwt' }) })
  if (signed) params = new URLSearchParams({ request: await oauth.issueRequestObject(as, client, params, signingKey) })

  const options = { DPoP, ...insecure }
  const pushed = await oauth.processPushedAuthorizationResponse(as, client, await oauth.pushedAuthorizationRequest(as, client, auth, params, options))
  const callback = await visit(`${as.authorization_endpoint}?${new URLSearchParams({ client_id: client.client_id, request_uri: pushed.request_uri })}`)
  const answer = signed ? await oauth.validateJwtAuthResponse(as, client, callback, state, insecure) : oauth.validateAuthResponse(as, client, callback, state)

  const redeem = () => oauth.authorizationCodeGrantRequest(as, client, auth, answer, settings.redirect_uri, verifier, options)
  const tokens = await oauth.processAuthorizationCodeResponse(as, client, await redeem(), { expectedNonce: nonce, requireIdToken: true })
  assert.equal(tokens.token_type, 'dpop')
  const { sub } = oauth.getValidatedIdTokenClaims(tokens)
  assert.equal(sub, settings.sub)

  const userinfo = async (token, more) => oauth.processUserInfoResponse(as, client, sub, await oauth.userInfoRequest(as, client, token, { ...insecure, ...more }))
  assert.equal((await userinfo(tokens.access_token, { DPoP })).email, settings.email)
  await assert.rejects(userinfo(tokens.access_token), (err) => err.status === 401)
  await assert.rejects(userinfo(tokens.access_token, { DPoP: oauth.DPoP(client, await oauth.generateKeyPair('ES256')) }))

  for (let i = 0; i < 2; i++) {
    const fresh = await oauth.processRefreshTokenResponse(as, client, await oauth.refreshTokenGrantRequest(as, client, auth, tokens.refresh_token, options))
    assert.equal(fresh.refresh_token, undefined)
    await userinfo(fresh.access_token, { DPoP })
  }

  const introspection = await oauth.introspectionRequest(as, client, auth, tokens.access_token, { ...insecure, requestJwtResponse: true })
  const said = await oauth.processIntrospectionResponse(as, { ...client, introspection_signed_response_alg: 'ES256' }, introspection)
  assert.deepEqual([said.active, said.token_type], [true, 'DPoP'])
  await assert.rejects(async () => oauth.processAuthorizationCodeResponse(as, client, await redeem()), (err) => err.error === 'invalid_grant')
}
process.exit(0)
