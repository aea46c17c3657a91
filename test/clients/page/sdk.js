'use strict'
// Functions with which the tests use an SDK, in a page and in Node. If a promise does not settle, its
// outcome reports that.

let client
const events = []

/** Returns the outcome of a promise: {value}, {error: {code, name, message}} or
 * {hangs}, which describes the situation if the page can. */
function outcome(promise, patience = 60000) {
  const late = new Promise((resolve) => setTimeout(() => resolve({ hangs: globalThis.situation?.() ?? 'no more is known' }), patience))
  const came = Promise.resolve(promise).then(
    (value) => ({ value: value ?? null }),
    (err) => ({ error: { code: Number(err?.code ?? 0), name: String(err?.name), message: String(err?.message ?? err) } }),
  )
  return Promise.race([came, late])
}

/** The SDK's own connection. */
const session = () => client.__wsClient.session ?? client.__wsClient.wsClient.session

/** Creates a client with a token; `more` are options of SignalWire(). */
async function open(token, more) {
  client = await SignalWire.SignalWire({ token, logLevel: 'silent', ...more })
  await client.connect?.() // 3.27 connects only on this call
  for (const name of ['session.connected', 'session.reconnecting', 'session.auth_error', 'session.disconnected']) {
    session().on(name, (err) => events.push(err ? `${name} ${err.code}` : name))
  }
  return 'open'
}

/** Creates a client of version 4; its errors are recorded as events. */
function begin(token) {
  client = new SignalWire.SignalWire(new SignalWire.StaticCredentialProvider({ token }))
  client.errors$.subscribe((err) => events.push(String(err.message ?? err)))
  return 0
}

/** Waits for an event, and returns all events so far. */
async function seen(name) {
  for (const end = Date.now() + 60000; !events.includes(name) && Date.now() < end; ) {
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return events
}

const online = () => client.online({ incomingCallHandlers: { all() {} } })

/** Reads all pages of addresses, and returns the names. */
async function names(params) {
  const all = []
  for (let page = await client.address.getAddresses(params); page; page = await page.nextPage()) {
    all.push(page.data.map((address) => address.name))
  }
  return all
}

/** Dials, and returns the cause with which the call ends. */
async function causeOf(to) {
  const call = await client.dial({ to, audio: true, video: false })
  const from = messages.length
  call.start().catch(() => {})
  return (await message('verto.bye', from)).params.cause
}
