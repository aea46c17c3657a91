// Follows FAPI 2.0 with openid-client and mutual TLS (RFC 8705): the client authenticates with its
// certificate, and its tokens are bound to the certificate.
import assert from 'node:assert/strict'
import https from 'node:https'
import * as client from 'openid-client'
import { oauthError, settings, visit } from './settings.mjs'

/** Returns a fetch that uses the certificate, if one is given. */
const fetchWith = (pair) => (url, { method, headers, body } = {}) => new Promise((resolve, reject) => {
  if (new URL(url).protocol === 'http:') return resolve(fetch(url, { method, headers, body }))
  const request = https.request(url, { method, headers: Object.fromEntries(new Headers(headers)), ca: settings.ca, agent: false, ...pair }, (response) => {
    const parts = []
    response.on('data', (part) => parts.push(part))
    response.on('end', () => resolve(new Response(Buffer.concat(parts), { status: response.statusCode, headers: response.headers })))
  })
  request.on('error', reject)
  request.end(body?.toString())
})

const own = fetchWith({ cert: settings.cert, key: settings.cert_key })
const stranger = fetchWith({ cert: settings.other_cert, key: settings.other_key })
const bare = fetchWith({})

const metadata = { id_token_signed_response_alg: 'ES256', use_mtls_endpoint_aliases: true }
const config = await client.discovery(new URL(settings.issuer), settings.client_id, metadata, client.TlsClientAuth(),
  { execute: [client.allowInsecureRequests, client.enableNonRepudiationChecks], [client.customFetch]: own })
const server = config.serverMetadata()
assert.equal(server.tls_client_certificate_bound_access_tokens, true)
assert.ok(server.token_endpoint_auth_methods_supported.includes(settings.method))
assert.match(server.mtls_endpoint_aliases.token_endpoint, /^https:/)
const as = (pair) => { config[client.customFetch] = pair }

const pkceCodeVerifier = client.randomPKCECodeVerifier()
const expectedState = client.randomState()
const request = async () => client.buildAuthorizationUrlWithPAR(config, {
  redirect_uri: settings.redirect_uri, scope: 'openid email offline_access', state: expectedState,
  code_challenge: await client.calculatePKCECodeChallenge(pkceCodeVerifier), code_challenge_method: 'S256',
})
for (const other of [stranger, bare]) {
  as(other)
  await assert.rejects(request(), oauthError('invalid_client'))
}
as(own)
const callback = await visit(await request())

// The certificate authenticates the client, and the tokens are bound to it.
const tokens = await client.authorizationCodeGrant(config, callback, { pkceCodeVerifier, expectedState, idTokenExpected: true })
assert.equal(tokens.token_type, 'bearer')
const { sub } = tokens.claims()
assert.equal(sub, settings.sub)
assert.equal((await client.fetchUserInfo(config, tokens.access_token, sub)).email, settings.email)
assert.ok((await client.tokenIntrospection(config, tokens.access_token)).cnf['x5t#S256'])

const apis = settings.apis.split(' ')
const read = async (pair, api) => (await pair(`${new URL(server.mtls_endpoint_aliases.token_endpoint).origin}${api}`,
  { headers: { authorization: `Bearer ${tokens.access_token}` } })).status
for (const api of apis) assert.equal(await read(own, api), 200, api)
for (const other of [stranger, bare]) {
  for (const api of apis) assert.equal(await read(other, api), 401, api)
  as(other)
  await assert.rejects(client.fetchUserInfo(config, tokens.access_token, sub))
  await assert.rejects(client.refreshTokenGrant(config, tokens.refresh_token), oauthError('invalid_client'))
  as(own)
}
const plain = await fetch(new URL(apis[0], settings.issuer), { headers: { authorization: `Bearer ${tokens.access_token}` } })
assert.equal(plain.status, 401)

const fresh = await client.refreshTokenGrant(config, tokens.refresh_token)
await client.fetchUserInfo(config, fresh.access_token, sub)
await client.tokenRevocation(config, fresh.access_token)
await assert.rejects(client.fetchUserInfo(config, fresh.access_token, sub))
process.exit(0)
