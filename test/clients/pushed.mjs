// Sends pushed and signed requests, and verifies signed responses, with openid-client.
import assert from 'node:assert/strict'
import * as client from 'openid-client'
import { discover, oauthError, settings, signingKey, visit } from './settings.mjs'

for (const [name, use, build] of [
  ['pushed', () => {}, (config, params) => client.buildAuthorizationUrlWithPAR(config, params)],
  ['pushed, signed response', client.useJwtResponseMode, (config, params) => client.buildAuthorizationUrlWithPAR(config, params)],
  ['signed', () => {}, (config, params) => client.buildAuthorizationUrlWithJAR(config, params, signingKey)],
  ['pushed and signed, signed response', client.useJwtResponseMode, async (config, params) => {
    const signed = await client.buildAuthorizationUrlWithJAR(config, params, signingKey)
    return client.buildAuthorizationUrlWithPAR(config, { request: signed.searchParams.get('request') })
  }],
]) {
  const config = await discover()
  use(config)
  const pkceCodeVerifier = client.randomPKCECodeVerifier()
  const expectedState = client.randomState()
  const expectedNonce = client.randomNonce()
  const url = await build(config, {
    redirect_uri: settings.redirect_uri, scope: 'openid email', state: expectedState, nonce: expectedNonce,
    code_challenge: await client.calculatePKCECodeChallenge(pkceCodeVerifier), code_challenge_method: 'S256',
  })
  assert.ok(!url.searchParams.has('scope'), `${name}: ${url} shows the request`)
  const callback = await visit(url)
  assert.equal(callback.searchParams.has('response'), use === client.useJwtResponseMode, `${name}: ${callback}`)
  const tokens = await client.authorizationCodeGrant(config, callback, { pkceCodeVerifier, expectedState, expectedNonce, idTokenExpected: true })
  assert.equal(tokens.claims().sub, settings.sub, name)
}

const config = await discover()
await assert.rejects(client.buildAuthorizationUrlWithPAR(config, { redirect_uri: 'https://evil.example/', scope: 'openid' }), oauthError('invalid_request'))
process.exit(0)
