// Acts as a device without a browser: it shows a code, and polls until a person allows or denies the
// request elsewhere.
import assert from 'node:assert/strict'
import * as client from 'openid-client'
import { discover, oauthError, settings, visit } from './settings.mjs'

const config = await discover()
const device = await client.initiateDeviceAuthorization(config, { scope: 'openid email offline_access' })
assert.match(device.user_code, /^[B-DF-HJ-NP-TV-XZ]{4}-[B-DF-HJ-NP-TV-XZ]{4}$/)
const polled = client.pollDeviceAuthorizationGrant(config, device)
await visit(`${device.verification_uri}#${device.user_code}`)
const tokens = await polled
assert.equal(tokens.claims().sub, settings.sub)
assert.equal((await client.fetchUserInfo(config, tokens.access_token, settings.sub)).email, settings.email)
assert.ok((await client.refreshTokenGrant(config, tokens.refresh_token)).access_token)

const second = await client.initiateDeviceAuthorization(config, { scope: 'openid' })
await visit(`${second.verification_uri_complete}#deny`)
await assert.rejects(client.pollDeviceAuthorizationGrant(config, second), oauthError('access_denied'))
process.exit(0)
