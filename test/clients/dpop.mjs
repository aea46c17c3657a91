// Uses tokens that are bound to a key (RFC 9449), with openid-client: a pushed request, tokens, a
// refresh, userinfo and the fabric's API.
import assert from 'node:assert/strict'
import * as client from 'openid-client'
import { discover, oauthError, settings, visit } from './settings.mjs'

const config = await discover()
const DPoP = client.getDPoPHandle(config, await client.randomDPoPKeyPair('ES256'))
const thief = client.getDPoPHandle(config, await client.randomDPoPKeyPair('ES256'))

const pkceCodeVerifier = client.randomPKCECodeVerifier()
const expectedState = client.randomState()
const url = await client.buildAuthorizationUrlWithPAR(config, {
  redirect_uri: settings.redirect_uri, scope: 'openid email offline_access', state: expectedState,
  code_challenge: await client.calculatePKCECodeChallenge(pkceCodeVerifier), code_challenge_method: 'S256',
}, { DPoP })
const callback = await visit(url)
const tokens = await client.authorizationCodeGrant(config, callback, { pkceCodeVerifier, expectedState, idTokenExpected: true }, undefined, { DPoP })
assert.equal(tokens.token_type, 'dpop')
const { sub } = tokens.claims()
assert.equal(sub, settings.sub)

const info = await client.fetchUserInfo(config, tokens.access_token, sub, { DPoP })
assert.equal(info.email, settings.email)
await assert.rejects(client.fetchUserInfo(config, tokens.access_token, sub, { DPoP: thief }))
await assert.rejects(client.fetchUserInfo(config, tokens.access_token, sub))

// The fabric's API accepts the token in the same way.
const api = new URL(settings.api)
const read = (handle) => client.fetchProtectedResource(config, tokens.access_token, api, 'GET', undefined, undefined, { DPoP: handle })
assert.equal((await read(DPoP)).status, 200)
await assert.rejects(read(thief))
const downgraded = await fetch(api, { headers: { authorization: `Bearer ${tokens.access_token}` } })
assert.equal(downgraded.status, 401)

const fresh = await client.refreshTokenGrant(config, tokens.refresh_token, undefined, { DPoP })
assert.equal(fresh.token_type, 'dpop')
const current = fresh.refresh_token ?? tokens.refresh_token // under FAPI 2.0, the refresh token stays the same
await assert.rejects(client.refreshTokenGrant(config, current), oauthError('invalid_grant'))
const elsewhere = client.refreshTokenGrant(config, current, undefined, { DPoP: thief })
if (settings.key) {
  // The client signs its assertions, so it may use a new key (RFC 9449, section 5). The new token is
  // bound to this key.
  const moved = await elsewhere
  await client.fetchUserInfo(config, moved.access_token, sub, { DPoP: thief })
  await assert.rejects(client.fetchUserInfo(config, moved.access_token, sub, { DPoP }))
} else {
  await assert.rejects(elsewhere, oauthError('invalid_grant'))
}
await client.fetchUserInfo(config, fresh.access_token, sub, { DPoP })
process.exit(0)
