// Uses the strictest known client with all its checks: it validates the unmodified responses of all
// endpoints.
import assert from 'node:assert/strict'
import * as oauth from 'oauth4webapi'
import { settings, visit } from './settings.mjs'

const insecure = { [oauth.allowInsecureRequests]: true }
const issuer = new URL(settings.issuer)
const as = await oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, insecure))
const client = { client_id: settings.client_id, id_token_signed_response_alg: settings.alg, require_auth_time: true }
const auth = { client_secret_basic: oauth.ClientSecretBasic, client_secret_post: oauth.ClientSecretPost }[settings.method]?.(settings.client_secret) ?? oauth.None()

const verifier = oauth.generateRandomCodeVerifier()
const nonce = oauth.generateRandomNonce()
const state = oauth.generateRandomState()
const params = { redirect_uri: settings.redirect_uri, client_id: client.client_id, response_type: 'code', scope: 'openid email offline_access', nonce, state,
  max_age: '600', code_challenge: await oauth.calculatePKCECodeChallenge(verifier), code_challenge_method: 'S256' }
const callback = await visit(`${as.authorization_endpoint}?${new URLSearchParams(params)}`)

const answer = oauth.validateAuthResponse(as, client, callback, state)
const code = () => oauth.authorizationCodeGrantRequest(as, client, auth, answer, settings.redirect_uri, verifier, insecure)
const response = await code()
const tokens = await oauth.processAuthorizationCodeResponse(as, client, response, { expectedNonce: nonce, maxAge: 600, requireIdToken: true })
await oauth.validateApplicationLevelSignature(as, response, insecure)
const { sub } = oauth.getValidatedIdTokenClaims(tokens)
assert.equal(sub, settings.sub)

const info = await oauth.processUserInfoResponse(as, client, sub, await oauth.userInfoRequest(as, client, tokens.access_token, insecure))
assert.equal(info.email, settings.email)

const fresh = await oauth.processRefreshTokenResponse(as, client, await oauth.refreshTokenGrantRequest(as, client, auth, tokens.refresh_token, insecure))
assert.equal(oauth.getValidatedIdTokenClaims(fresh).sub, sub)

if (settings.method !== 'none') {
  const said = await oauth.processIntrospectionResponse(as, client, await oauth.introspectionRequest(as, client, auth, fresh.access_token, insecure))
  assert.deepEqual([said.active, said.sub, said.client_id], [true, sub, client.client_id])
}

// If a request is refused, the client can read the error and the challenge.
await assert.rejects(async () => oauth.processUserInfoResponse(as, client, sub, await oauth.userInfoRequest(as, client, 'wrong', insecure)),
  (err) => err instanceof oauth.WWWAuthenticateChallengeError && err.status === 401 && err.cause[0].scheme === 'bearer' && err.cause[0].parameters.error === 'invalid_token')
await assert.rejects(async () => oauth.processAuthorizationCodeResponse(as, client, await code()),
  (err) => err instanceof oauth.ResponseBodyError && err.error === 'invalid_grant' && err.status === 400)
const other = new URL(callback)
other.searchParams.set('iss', 'https://other.example/')
assert.throws(() => oauth.validateAuthResponse(as, client, other, state))

await oauth.processRevocationResponse(await oauth.revocationRequest(as, client, auth, fresh.refresh_token, insecure))
process.exit(0)
