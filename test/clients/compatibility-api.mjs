// The compatibility API's client on five recordings of one to five seconds, the
// newest of which is the longest.
import assert from 'node:assert/strict'
import { RestClient } from '@signalwire/compatibility-api'

const settings = JSON.parse(process.env.SETTINGS)
const sids = settings.sids.split(' ')
const newestFirst = sids.toReversed()

const client = RestClient(settings.project, settings.key, { signalwireSpaceUrl: settings.space })
if (settings.base) client.api.baseUrl = settings.base

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

const stranger = RestClient(settings.project, 'PTwrong', { signalwireSpaceUrl: settings.space })
if (settings.base) stranger.api.baseUrl = settings.base
await assert.rejects(stranger.recordings.list(), (err) => err.status === 401 && err.code === 20003)
process.exit(0)

function sidsOf(recordings) {
  return recordings.map((r) => r.sid)
}

function each(options) {
  return new Promise((resolve, reject) => {
    const seen = []
    const done = (err) => (err ? reject(err) : resolve(seen))
    client.recordings.each({ ...options, callback: (r) => seen.push(r.sid), done })
  })
}

function notFound(err) {
  return err.constructor.name === 'RestException' && err.status === 404 && err.code === 20404 && err.message !== '' && err.moreInfo !== ''
}
