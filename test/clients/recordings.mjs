// Uses a client of the recordings API with five recordings of one to five seconds. The newest
// recording is the longest.
import assert from 'node:assert/strict'
import { connect, notFound, settings, sidsOf } from './laml.mjs'

const sids = settings.sids.split(' ')
const newestFirst = sids.toReversed()
const client = connect(settings.key)

const one = await client.recordings(sids[1]).fetch()
assert.equal(one.sid, sids[1])
assert.equal(one.accountSid, settings.project)
assert.equal(one.apiVersion, '2010-04-01')
assert.equal(one.duration, 2)
assert.equal(one.channels, 1)
assert.equal(one.status, 'completed')
assert.match(one.price, /^-0\.\d+$/)
assert.ok(Math.abs(Date.now() - one.dateCreated) < 3600_000, `dateCreated is ${one.dateCreated}`)
assert.equal(one.uri, `/api/laml/2010-04-01/Accounts/${settings.project}/Recordings/${sids[1]}.json`)

assert.deepEqual(sidsOf(await client.recordings.list({ limit: 3 })), newestFirst.slice(0, 3))
assert.deepEqual(sidsOf(await client.recordings.list()), newestFirst)
assert.deepEqual(sidsOf(await client.recordings.list({ pageSize: 2 })), newestFirst)
assert.deepEqual(await each({ pageSize: 2 }), newestFirst)

let page = await client.recordings.page({ pageSize: 2 })
assert.equal(page.previousPageUrl, undefined)
page = await page.nextPage()
assert.deepEqual(sidsOf(page.instances), newestFirst.slice(2, 4))
page = await page.nextPage()
assert.deepEqual(sidsOf(page.instances), newestFirst.slice(4))
assert.equal(await page.nextPage(), undefined)
page = await page.previousPage()
assert.deepEqual(sidsOf(page.instances), newestFirst.slice(2, 4))

const yesterday = new Date(Date.now() - 86400_000)
assert.deepEqual(sidsOf(await client.recordings.list({ dateCreatedAfter: yesterday })), newestFirst)
assert.deepEqual(await client.recordings.list({ dateCreatedBefore: yesterday }), [])

assert.equal(await client.recordings(sids[0]).remove(), true)
await assert.rejects(client.recordings(sids[0]).fetch(), notFound)
await assert.rejects(client.recordings(sids[0]).remove(), notFound)
assert.deepEqual(sidsOf(await client.recordings.list()), newestFirst.slice(0, 4))

// Filter the recordings of the account, of a call and of a conference.
const call = client.calls(settings.call)
assert.deepEqual(sidsOf(await client.recordings.list({ callSid: settings.call })), [sids[1]])
assert.deepEqual(sidsOf(await call.recordings.list()), [sids[1]])
assert.equal((await call.recordings(sids[1]).fetch()).callSid, settings.call)
await assert.rejects(call.recordings(sids[2]).fetch(), notFound)
assert.deepEqual(sidsOf(await client.recordings.list({ conferenceSid: settings.conference })), [sids[2]])
assert.deepEqual(sidsOf(await client.conferences(settings.conference).recordings.list()), [sids[2]])
assert.equal((await client.conferences(settings.conference).recordings(sids[2]).fetch()).source, 'StartConferenceRecording')
assert.deepEqual(await client.recordings.list({ callSid: settings.conference }), [])
const day = new Date(one.dateCreated).setUTCHours(0, 0, 0, 0)
assert.ok(sidsOf(await client.recordings.list({ dateCreated: new Date(day) })).includes(sids[1]))
assert.deepEqual(await client.recordings.list({ dateCreated: new Date(day - 86400_000) }), [])
assert.deepEqual(sidsOf(await client.recordings.list({ includeSoftDeleted: true })), newestFirst)
assert.deepEqual(await client.recordings(sids[1]).transcriptions.list(), [])

await assert.rejects(connect('PTwrong').recordings.list(), (err) => err.status === 401 && err.code === 20003)
process.exit(0)

function each(options) {
  return new Promise((resolve, reject) => {
    const seen = []
    const done = (err) => (err ? reject(err) : resolve(seen))
    client.recordings.each({ ...options, callback: (r) => seen.push(r.sid), done })
  })
}
