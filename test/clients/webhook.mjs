// Checks a webhook's request with the vendor's validator.
import assert from 'node:assert/strict'
import { validateRequest } from '@signalwire/web-api'

const { key, url, body, signature } = JSON.parse(process.env.SETTINGS)
assert.equal(validateRequest(key, signature, url, body), true)
assert.equal(validateRequest(key + 'x', signature, url, body), false)
assert.equal(validateRequest(key, signature, url + '?', body), false)
assert.equal(validateRequest(key, signature, url, body.replace('created', 'deleted')), false)
