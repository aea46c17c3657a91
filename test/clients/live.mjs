// Pauses, resumes and stops an announced recording during a call, with a client of the recordings API.
import assert from 'node:assert/strict'
import { connect, settings, sidsOf } from './laml.mjs'

const client = connect(settings.key)
const unknown = client.calls('7d1cf5b9-6f0d-4c39-8b3f-000000000000')
await assert.rejects(unknown.recordings.create(), (err) => err.status === 400 && err.code === 21220)
const live = client.calls(settings.live)
const begun = await live.recordings.create({
  recordingChannels: 'dual',
  recordingStatusCallback: 'https://example.com/told',
  recordingStatusCallbackEvent: ['in-progress', 'completed'],
  trim: 'trim-silence',
})
assert.equal(begun.status, 'in-progress')
assert.equal(begun.callSid, settings.live)
assert.equal(begun.channels, 2)
assert.equal(begun.sid, settings.announced)
await assert.rejects(live.recordings.create({ trim: 'all' }), (err) => err.code === 13699)
await assert.rejects(live.recordings.create({ recordingStatusCallbackEvent: ['begun'] }), (err) => err.code === 13621)
for (const status of ['paused', 'in-progress', 'stopped']) {
  assert.equal((await live.recordings(begun.sid).update({ status, pauseBehavior: 'skip' })).status, status)
}
await assert.rejects(live.recordings(begun.sid).update({ status: 'in-progress' }), (err) => err.code === 21220)
assert.deepEqual(sidsOf(await live.recordings.list()), [begun.sid])
assert.equal(await live.recordings(begun.sid).remove(), true)
assert.deepEqual(await live.recordings.list(), [])

process.exit(0)
