// Runs a login from beginning to end: discovery, a code with PKCE, userinfo, introspection, refreshes
// with rotation, reuse of a refresh token, and a revocation.
import assert from 'node:assert/strict'
import * as client from 'openid-client'
import { discover, oauthError, settings, visit } from './settings.mjs'

const config = await discover()
assert.equal(config.serverMetadata().issuer, settings.issuer)
const twin = await discover({ algorithm: 'oauth2' })
assert.equal(twin.serverMetadata().token_endpoint, config.serverMetadata().token_endpoint)

const tokens = await signIn()
const claims = tokens.claims()
assert.equal(claims.sub, settings.sub)

const info = await client.fetchUserInfo(config, tokens.access_token, claims.sub)
assert.equal(info.email, settings.email)
assert.equal(info.given_name, 'Ada')

await introspectionSays(tokens.access_token, true)
await introspectionSays('garbage', false)

const fresh = await client.refreshTokenGrant(config, tokens.refresh_token)
assert.notEqual(fresh.refresh_token, tokens.refresh_token)
assert.notEqual(fresh.access_token, tokens.access_token)
await client.fetchUserInfo(config, fresh.access_token, claims.sub)

// A response may get lost, so for a while the same token returns the same successor.
const again = await client.refreshTokenGrant(config, tokens.refresh_token)
assert.equal(again.refresh_token, fresh.refresh_token)

// An older token may have been stolen, so using it ends the whole family.
const last = await client.refreshTokenGrant(config, fresh.refresh_token)
await refuses(tokens.refresh_token)
await refuses(last.refresh_token)

const second = await signIn()
await client.tokenRevocation(config, second.refresh_token)
await refuses(second.refresh_token)
await eventually(() => assert.rejects(client.fetchUserInfo(config, second.access_token, claims.sub)))
process.exit(0)

async function signIn() {
  const pkceCodeVerifier = client.randomPKCECodeVerifier()
  const expectedState = client.randomState()
  const expectedNonce = client.randomNonce()
  const callback = await visit(client.buildAuthorizationUrl(config, {
    redirect_uri: settings.redirect_uri,
    scope: 'openid profile email offline_access',
    code_challenge: await client.calculatePKCECodeChallenge(pkceCodeVerifier),
    code_challenge_method: 'S256',
    state: expectedState,
    nonce: expectedNonce,
  }))
  return client.authorizationCodeGrant(config, callback, { pkceCodeVerifier, expectedState, expectedNonce, idTokenExpected: true })
}

function refuses(token) {
  return assert.rejects(client.refreshTokenGrant(config, token), oauthError('invalid_grant'))
}

// A public client cannot authenticate, so it may not introspect tokens.
async function introspectionSays(token, active) {
  if (settings.method === 'none') {
    await assert.rejects(client.tokenIntrospection(config, token))
    return
  }
  const said = await client.tokenIntrospection(config, token)
  assert.equal(said.active, active)
  if (active) assert.equal(said.sub, settings.sub)
}

// A revocation is effective everywhere within a second.
async function eventually(check) {
  const deadline = Date.now() + 60_000
  for (;;) {
    try {
      return await check()
    } catch (err) {
      if (Date.now() > deadline) throw err
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
}
