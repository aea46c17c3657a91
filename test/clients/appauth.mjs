// Uses AppAuth for JavaScript like a desktop app. It covers discovery, a challenge, tokens without a
// secret, a refresh and a revocation.
import assert from 'node:assert/strict'
import { register } from 'node:module'
import { settings, visit } from './settings.mjs'

console.log = console.error // AppAuth logs to stdout, but the test reads URLs from stdout

// AppAuth's modules import each other without file extensions, which bundlers add.
register('data:text/javascript,' + encodeURIComponent(`
  export const resolve = (name, context, next) => next(name, context).catch(() => next(name + '.js', context))
`))
const app = await import('@openid/appauth')
const { NodeRequestor } = await import('@openid/appauth/built/src/node_support/node_requestor.js')
const { NodeCrypto } = await import('@openid/appauth/built/src/node_support/crypto_utils.js')

const requestor = new NodeRequestor()
const config = await app.AuthorizationServiceConfiguration.fetchFromIssuer(settings.issuer, requestor)
const { client_id, redirect_uri } = settings
const request = new app.AuthorizationRequest({ client_id, redirect_uri, scope: 'openid email offline_access', extras: { prompt: 'consent', access_type: 'offline' } }, new NodeCrypto())
await request.setupCodeVerifier()

class Handler extends app.AuthorizationRequestHandler {
  performAuthorizationRequest() {}
  completeAuthorizationRequest() {}
}
const handler = new Handler(new app.BasicQueryStringUtils(), new NodeCrypto())
const callback = await visit(handler.buildRequestUrl(config, request))
assert.equal(callback.searchParams.get('state'), request.state)

const tokens = new app.BaseTokenRequestHandler(requestor)
const ask = (grant) => tokens.performTokenRequest(config, new app.TokenRequest({ client_id, redirect_uri, ...grant }))
const first = await ask({ grant_type: app.GRANT_TYPE_AUTHORIZATION_CODE, code: callback.searchParams.get('code'), extras: { code_verifier: request.internal.code_verifier } })
assert.ok(first.isValid() && first.idToken && first.tokenType.toLowerCase() === 'bearer')
const info = await requestor.xhr({ url: config.userInfoEndpoint, method: 'GET', dataType: 'json', headers: { Authorization: `Bearer ${first.accessToken}` } })
assert.deepEqual([info.sub, info.email], [settings.sub, settings.email])

const second = await ask({ grant_type: app.GRANT_TYPE_REFRESH_TOKEN, refresh_token: first.refreshToken })
assert.ok(second.isValid() && second.accessToken !== first.accessToken)
assert.ok(await tokens.performRevokeTokenRequest(config, new app.RevokeTokenRequest({ token: second.refreshToken, token_type_hint: 'refresh_token', client_id })))
await assert.rejects(ask({ grant_type: app.GRANT_TYPE_REFRESH_TOKEN, refresh_token: second.refreshToken }))
process.exit(0)
