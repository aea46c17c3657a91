// Uses the calls API while the only running call of the project is recorded, and ends the call.
import assert from 'node:assert/strict'
import { connect, notFound, settings, sidsOf } from './laml.mjs'

const client = connect(settings.key)
const call = client.calls(settings.call)

const one = await call.fetch()
assert.equal(one.sid, settings.call)
assert.equal(one.accountSid, settings.project)
assert.equal(one.status, 'in-progress')
assert.equal(one.to, settings.to)
assert.match(one.from, /^\/private\//)
assert.equal(one.uri, `/api/laml/2010-04-01/Accounts/${settings.project}/Calls/${settings.call}.json`)
assert.ok(Math.abs(Date.now() - one.startTime) < 3600_000, `startTime is ${one.startTime}`)
assert.deepEqual((await call.recordings.list()).map((r) => r.status), ['in-progress'])

assert.deepEqual(sidsOf(await client.calls.list({ status: 'in-progress' })), [settings.call])
assert.deepEqual(sidsOf(await client.calls.list({ to: settings.to, limit: 1 })), [settings.call])
assert.deepEqual(await client.calls.list({ status: 'busy' }), [])
assert.deepEqual(await client.calls.list({ startTimeBefore: new Date(Date.now() - 86400_000) }), [])
const all = sidsOf(await client.calls.list())
assert.equal(all[0], settings.call)
assert.deepEqual(sidsOf(await client.calls.list({ pageSize: 1 })), all)
await assert.rejects(client.calls('7d1cf5b9-6f0d-4c39-8b3f-000000000000').fetch(), notFound)

await call.update({ status: 'completed' })
const deadline = Date.now() + 60_000
while ((await call.fetch()).status === 'in-progress') {
  assert.ok(Date.now() < deadline, 'the call does not end')
  await new Promise((resolve) => setTimeout(resolve, 20))
}
const ended = await call.fetch()
assert.equal(ended.status, 'completed')
assert.ok(ended.endTime >= ended.startTime)
assert.deepEqual(sidsOf(await client.calls.list({ status: 'completed', limit: 1 })), [settings.call])
await assert.rejects(call.update({ status: 'completed' }), (err) => err.status === 400 && err.code === 21220)
await assert.rejects(connect('PTwrong').calls.list(), (err) => err.status === 401 && err.code === 20003)
process.exit(0)
