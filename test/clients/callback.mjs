// Checks a request to a status callback with the vendors' validators.
import assert from 'node:assert/strict'
import { RestClient } from '@signalwire/compatibility-api'
import twilio from 'twilio'

const { key, url, method, body, signature } = JSON.parse(process.env.SETTINGS)
const fields = method === 'POST' ? Object.fromEntries(new URLSearchParams(body)) : {}

for (const validate of [RestClient.validateRequest, twilio.validateRequest]) {
  assert.equal(validate(key, signature, url, fields), true)
  assert.equal(validate(key + 'x', signature, url, fields), false)
  assert.equal(validate(key, signature, url.replace('recorded', 'deleted'), fields), false)
  assert.equal(validate(key, signature, url, { ...fields, RecordingStatus: 'absent' }), false)
}
