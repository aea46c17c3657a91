'use strict'
// Functions with which the tests use calls in a page. The microphone is a tone, so that the other side
// can tell whom it hears. The camera is a canvas of one color.

let call, dialing
let tone = 440
const invites = []
const states = [] // the states in call.state events, and the call's end
const updates = [] // events about members
const rooms = [] // the room at first, and after each update

/** Returns a video of one color. It has few and small frames, because two tabs encode and decode it. */
function film(color) {
  const canvas = document.createElement('canvas')
  canvas.width = 64
  canvas.height = 48
  const paint = canvas.getContext('2d')
  setInterval(() => {
    paint.fillStyle = color
    paint.fillRect(0, 0, 64, 48)
    paint.fillStyle = 'white'
    paint.fillRect(Math.random() * 20, 0, 2, 2)
  }, 100)
  return canvas.captureStream(10)
}

let context

/** Returns the page's AudioContext. There is only one, because each takes CPU time as long as it runs. */
async function sound() {
  context ??= new AudioContext()
  await context.resume()
  return context
}

/**
 * Creates the microphone and the camera: a tone of the given frequency, and a picture of the given
 * color.
 */
function wear(frequency, color) {
  tone = frequency
  navigator.mediaDevices.getUserMedia = async (wanted) => {
    const stream = new MediaStream()
    if (wanted.audio) {
      const audio = await sound()
      const source = audio.createOscillator()
      const gain = audio.createGain()
      const out = audio.createMediaStreamDestination()
      source.frequency.value = tone
      gain.gain.value = 0.5
      source.connect(gain).connect(out)
      source.start()
      stream.addTrack(out.stream.getAudioTracks()[0])
    }
    if (wanted.video) stream.addTrack(film(color).getVideoTracks()[0])
    return stream
  }
  navigator.mediaDevices.getDisplayMedia = async () => film('lime')
  return 0
}

/**
 * Connects with a token, and goes online if `reachable`. Calls of this page outlive their server if
 * `kept`.
 */
async function enter(token, reachable, kept) {
  await open(token)
  if (kept) client = Selvage.keepCalls(client)
  if (reachable) await client.online({ incomingCallHandlers: { all: (n) => invites.push(n.invite) } })
  return 'here'
}

function follow(c) {
  call = c
  for (const name of ['call.state', 'call.joined', 'call.left', 'destroy', 'member.joined', 'member.left', 'layout.changed', 'media.reconnecting', 'media.connected']) {
    c.on(name, (e) => states.push(name === 'call.state' ? e.call_state : name))
  }
  c.on('member.updated', (e) => updates.push(e.member))
  for (const name of ['call.joined', 'room.updated']) c.on(name, (e) => rooms.push(e.room_session))
  return c
}

/** Dials, and waits until the call is answered. */
async function dial(to, params) {
  const c = follow(await client.dial({ to, audio: true, video: false, ...params }))
  await c.start()
  return c.callId
}

/** Attaches to the call that the page had before a reload. */
async function reattach(to, params) {
  const c = follow(await client.reattach({ to, audio: true, video: false, ...params }))
  await c.start()
  return c.callId
}

/** Accepts the n-th call that rang. */
async function accept(n, params) {
  await until(() => invites[n])
  follow(await invites[n].accept({ audio: true, video: false, ...params }))
  await until(() => states.includes('call.joined'))
  return call.callId
}

/** Waits until a condition holds, and returns its value. */
async function until(condition, patience = 50000) {
  for (const end = Date.now() + patience; ; ) {
    const value = await condition()
    if (value) return value
    if (Date.now() > end) throw new Error('timed out waiting for ' + condition + '; ' + situation())
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** Describes the call, for messages of failed tests. */
function situation() {
  const ours = messages.map((m) => m.method)
  const peers = connections.map((c) => [c.signalingState, c.iceGatheringState, c.iceConnectionState, c.connectionState, c.gathered])
  return `states ${states}; messages ${ours}; events ${events}; sockets ${sockets.map((s) => s.readyState)}; peers ${peers.join('; ')}`
}

let analyser
let heardStream

/** Returns the loudness of all frequencies that are currently heard, in dB, or null. */
async function spectrum() {
  const stream = call.remoteStream
  if (!stream || !stream.getAudioTracks().length) return null
  if (heardStream !== stream) {
    const audio = await sound()
    analyser = audio.createAnalyser()
    analyser.fftSize = 4096
    audio.createMediaStreamSource(stream).connect(analyser)
    heardStream = stream
  }
  const bins = new Float32Array(analyser.frequencyBinCount)
  analyser.getFloatFrequencyData(bins)
  return bins
}

/** Returns the loudest frequency that is currently heard, in Hz, or 0 for silence. */
async function hears() {
  const bins = await spectrum()
  if (!bins) return 0
  let top = 0
  for (let i = 1; i < bins.length; i++) if (bins[i] > bins[top]) top = i
  return bins[top] < -60 ? 0 : Math.round((top * analyser.context.sampleRate) / analyser.fftSize)
}

/** Waits until the given frequency is heard; 0 is silence. */
const hear = (frequency) => until(async () => {
  const h = await hears()
  return frequency === 0 ? h === 0 : Math.abs(h - frequency) < 25
}).then(() => frequency)

/** Waits until each of the given tones is heard, and none of the other tones. */
const hearAll = (tones, others) => until(async () => {
  const bins = await spectrum()
  const loudness = (tone) => bins[Math.round((tone * analyser.fftSize) / analyser.context.sampleRate)]
  return bins && tones.every((t) => loudness(t) > -50) && others.every((t) => loudness(t) < -65)
}).then(() => tones)

/** Returns the codec of the audio that arrives. */
async function heardCodec() {
  const stats = await connections.at(-1).getStats()
  const heard = [...stats.values()].find((s) => s.type === 'inbound-rtp' && s.kind === 'audio')
  return stats.get(heard.codecId).mimeType
}

/** Waits until the given number of seconds of sound have passed. */
async function pass(seconds) {
  const audio = await sound()
  const end = audio.currentTime + seconds
  return until(() => audio.currentTime >= end)
}

/** Waits for the video that the SDK shows in its rootElement, and returns it. */
const inRoot = () => until(() => [...root.querySelectorAll('video')].find((v) => v.videoWidth && !v.paused))

/** Waits until the given color is seen: r, g or b. `shown` is an element that already plays the video. */
async function see(color, shown) {
  const video = (await shown) ?? document.createElement('video')
  video.muted = true
  const canvas = document.createElement('canvas')
  canvas.width = canvas.height = 8
  const paint = canvas.getContext('2d', { willReadFrequently: true })
  await until(async () => {
    const track = call.remoteStream?.getVideoTracks()[0]
    if (!track) return false
    if (!shown && video.srcObject?.getVideoTracks()[0] !== track) {
      video.srcObject = new MediaStream([track])
      video.play().catch(() => {})
    }
    paint.drawImage(video, 0, 0, 8, 8)
    const [r, g, b] = paint.getImageData(4, 4, 1, 1).data
    const top = { r, g, b }
    return Object.keys(top).every((c) => (c === color ? top[c] > 100 : top[c] < 90))
  })
  return color
}

/** Returns the states of peer connections and senders, for messages. */
const microphone = () => call.localStream?.getAudioTracks().filter((t) => t.readyState === 'live' && t.enabled).length ?? 0

/** Returns the codec of the audio that is sent. */
const codecSent = () => until(async () => {
  const all = (await Promise.all(connections.map((c) => c.getStats()))).flatMap((stats) => [...stats.values()])
  const sent = all.find((s) => s.type === 'outbound-rtp' && s.kind === 'audio' && s.packetsSent > 0)
  return all.find((s) => s.id === sent?.codecId)?.mimeType
})
