'use strict'
// Watches the sockets and media connections that an SDK opens. Load it before the SDK.

const sockets = []
const messages = [] // messages of the verto protocol, in the order of their arrival

globalThis.WebSocket = class extends WebSocket {
  constructor(...args) {
    super(...args)
    sockets.push(this)
    this.addEventListener('message', ({ data }) => {
      const { params } = JSON.parse(data)
      if (params?.event_type === 'webrtc.message') messages.push(params.params)
    })
  }
}

const connections = [] // media connections
let restriction = {} // changes to the configuration of later connections
let codecs // the only audio codecs that later connections offer; undefined means all codecs

// For the SDK, Chromium gathers ten pools of candidates in advance. On a busy machine, Chromium then
// sometimes gathers none at all, and the SDK never stops waiting for them.
if (globalThis.RTCPeerConnection) {
  globalThis.RTCPeerConnection = class extends RTCPeerConnection {
    constructor(config, ...args) {
      super({ ...config, iceCandidatePoolSize: 0, ...restriction }, ...args)
      connections.push(this)
      this.gathered = []
      this.addEventListener('icecandidate', ({ candidate }) => this.gathered.push(candidate ? candidate.candidate.replace(/.* typ /, '') : 'end'))
      this.addEventListener('icecandidateerror', (e) => this.gathered.push(`${e.errorCode} ${e.errorText}`))
    }

    // If connecting takes more than three seconds, the SDK permits only relays from then on. The tests
    // permit other paths, too, because a busy machine may need longer, and most servers have no relay.
    setConfiguration(config) {
      super.setConfiguration({ ...config, iceTransportPolicy: restriction.iceTransportPolicy ?? 'all' })
    }

    createOffer(...args) {
      for (const t of codecs ? this.getTransceivers() : []) {
        const all = RTCRtpReceiver.getCapabilities(t.receiver.track.kind).codecs
        if (t.receiver.track.kind === 'audio') t.setCodecPreferences(all.filter((c) => codecs.includes(c.mimeType)))
      }
      return super.createOffer(...args)
    }
  }
}

/** Waits for a message with the given method after the first `from` messages, and returns it. */
async function message(method, from = 0) {
  for (const end = Date.now() + 60000; Date.now() < end; ) {
    const found = messages.slice(from).find((m) => m.method === method)
    if (found) return found
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  throw new Error(`no ${method} came; there were ${messages.map((m) => m.method)}`)
}
