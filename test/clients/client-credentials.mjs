// Requests a backend's own token, uses it at the REST API, introspects it and revokes it.
import assert from 'node:assert/strict'
import * as client from 'openid-client'
import { discover, oauthError, settings } from './settings.mjs'

const config = await discover()
const tokens = await client.clientCredentialsGrant(config, { scope: settings.scope })
assert.equal(tokens.token_type, 'bearer')
assert.equal(tokens.refresh_token, undefined)
assert.equal(tokens.id_token, undefined)

assert.equal((await ask(tokens.access_token)).status, 200)
const said = await client.tokenIntrospection(config, tokens.access_token)
assert.equal(said.active, true)
assert.equal(said.scope, settings.scope)
assert.equal(said.client_id, settings.client_id)

await assert.rejects(client.clientCredentialsGrant(config, { scope: 'Datasphere' }), oauthError('invalid_scope'))

// If a secret or assertion in the body is invalid, the response explains why. With Basic, the
// response has a challenge (RFC 6749, section 5.2).
const stranger = await discover({ stranger: true })
const refusal = client.clientCredentialsGrant(stranger, { scope: settings.scope })
await (settings.method === 'client_secret_basic'
  ? assert.rejects(refusal, (err) => err.cause?.[0]?.scheme === 'basic')
  : assert.rejects(refusal, (err) => err.error === 'invalid_client' && /registered for|its aud must be/.test(err.error_description)))

await client.tokenRevocation(config, tokens.access_token)
const deadline = Date.now() + 60_000
while ((await ask(tokens.access_token)).status !== 401) {
  assert.ok(Date.now() < deadline, 'a revoked token is still accepted')
  await new Promise((resolve) => setTimeout(resolve, 20))
}
process.exit(0)

function ask(token) {
  return fetch(settings.api, { headers: { authorization: `Bearer ${token}` } })
}
