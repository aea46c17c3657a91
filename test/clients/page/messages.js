'use strict'
// Functions with which the tests use messages in a page, with the SDK under test and with our SDK.

/** The texts of the messages that the listener of each SDK got. */
const heard = []
const oursHeard = []
let ours

/** Listens to messages. */
async function hear() {
  await client.conversation.subscribe((message) => heard.push(message.text))
}

/** Opens our SDK, as the server serves it, next to the SDK under test, and listens to messages. */
async function openOurs(server, token) {
  const { Fabric } = await import(`${server}/sdk/selvage.mjs`)
  ours = await Fabric({ token, host: server })
  const ready = new Promise((resolve) => {
    const { prototype } = WebSocket
    const { send } = prototype
    prototype.send = function (text) {
      if (text.includes('"id":"connect"')) this.addEventListener('message', resolve, { once: true })
      return send.call(this, text)
    }
  })
  ours.messages.on((message) => oursHeard.push(message.text))
  await ready
  return 'open'
}

/**
 * Takes the connection of our SDK away until found() is called. An hour has then passed for the SDK, and it
 * cannot read the messages that it missed when it first asks for them.
 */
function lose() {
  const { WebSocket, fetch } = window
  const { now } = Date
  window.WebSocket = class {
    constructor() {
      setTimeout(() => this.onclose())
    }
    close() {}
  }
  ours.messages.socket.close()
  window.fetch = (url, init) => {
    if (init?.method !== 'GET' || !url.includes('/api/fabric/messages')) return fetch(url, init)
    window.fetch = fetch
    return Promise.reject(new TypeError('no network'))
  }
  Date.now = () => now() + 3_600_000
  const inAnHour = (_, seconds) => `"timestamp":${Number(seconds) + 3600}`
  const later = ({ data }) => ({ data: data.replace(/"timestamp":(\d+)/g, inAnHour) })
  found = () => {
    window.WebSocket = class extends WebSocket {
      set onmessage(receive) {
        super.onmessage = (event) => receive(later(event))
      }
    }
    return 'found'
  }
  return 'lost'
}
let found

/** Reads all pages of a list of messages. */
async function history(first) {
  const all = []
  for (let page = await first; page; page = page.hasNext ? await page.nextPage() : undefined) all.push(...page.data)
  return all
}

/** Opens the messages of an address with version 4. */
let shown
async function address(id) {
  shown = await new Promise((resolve) => client.directory.get$(id).subscribe(resolve))
  await new Promise((resolve) => shown.textMessages$.subscribe(resolve))
  return id
}

const texts = () => (shown.textMessage?.values ?? []).map((message) => message.text).sort().join('|')
