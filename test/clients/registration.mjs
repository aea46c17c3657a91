// Registers one client with openid-client and one with oauth4webapi, signs in with each client, and
// deletes both.
import assert from 'node:assert/strict'
import * as client from 'openid-client'
import * as oauth from 'oauth4webapi'
import { settings, visit } from './settings.mjs'

const issuer = new URL(settings.issuer)
const metadata = {
  client_name: 'Parrot',
  redirect_uris: [settings.redirect_uri],
  grant_types: ['authorization_code', 'refresh_token'],
  token_endpoint_auth_method: 'client_secret_post', // openid-client's default
  'client_name#de': 'Papagei',
}

const config = await client.dynamicClientRegistration(issuer, metadata, undefined, {
  initialAccessToken: settings.token,
  execute: [client.allowInsecureRequests],
})
const pkceCodeVerifier = client.randomPKCECodeVerifier()
const expectedNonce = client.randomNonce()
const callback = await visit(client.buildAuthorizationUrl(config, {
  redirect_uri: settings.redirect_uri,
  scope: 'openid email offline_access',
  nonce: expectedNonce,
  code_challenge: await client.calculatePKCECodeChallenge(pkceCodeVerifier),
  code_challenge_method: 'S256',
}))
const tokens = await client.authorizationCodeGrant(config, callback, { pkceCodeVerifier, expectedNonce, idTokenExpected: true })
assert.equal(tokens.claims().sub, settings.sub)
const info = await client.fetchUserInfo(config, tokens.access_token, settings.sub)
assert.equal(info.email, settings.email)
await client.refreshTokenGrant(config, tokens.refresh_token)
await manage(config.clientMetadata(), 'Owl')

// A wrong initial access token gets a challenge.
const insecure = { [oauth.allowInsecureRequests]: true }
const as = await oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, insecure))
const register = async (token) => oauth.processDynamicClientRegistrationResponse(
  await oauth.dynamicClientRegistrationRequest(as, { ...metadata, token_endpoint_auth_method: 'none' }, { ...insecure, initialAccessToken: token }))
await assert.rejects(register('wrong'), (err) => err instanceof oauth.WWWAuthenticateChallengeError && err.status === 401)

const app = await register(settings.token)
assert.equal(app.client_secret, undefined)
const verifier = oauth.generateRandomCodeVerifier()
const params = { redirect_uri: settings.redirect_uri, client_id: app.client_id, response_type: 'code', scope: 'openid',
  code_challenge: await oauth.calculatePKCECodeChallenge(verifier), code_challenge_method: 'S256' }
const answer = oauth.validateAuthResponse(as, app, await visit(`${as.authorization_endpoint}?${new URLSearchParams(params)}`), oauth.expectNoState)
const response = await oauth.authorizationCodeGrantRequest(as, app, oauth.None(), answer, settings.redirect_uri, verifier, insecure)
const set = await oauth.processAuthorizationCodeResponse(as, app, response, { requireIdToken: true })
assert.equal(oauth.getValidatedIdTokenClaims(set).sub, settings.sub)
await manage(app, 'Eagle')
process.exit(0)

/** Renames a client and deletes it, as RFC 7592 defines. */
async function manage({ client_id, registration_client_uri, registration_access_token }, name) {
  const send = (method, body) => fetch(registration_client_uri, { method, body: body && JSON.stringify(body),
    headers: { Authorization: `Bearer ${registration_access_token}`, 'Content-Type': 'application/json' } })
  const renamed = await send('PUT', { ...metadata, client_id, client_name: name })
  assert.equal((await renamed.json()).client_name, name)
  assert.equal((await send('DELETE')).status, 204)
  assert.equal((await send('GET')).status, 401)
}
