// Makes calls of @signalwire/js outlive the server that carries them.
//
// When the node that carries a call is lost, the server sends its clients the call event `call.state`
// with the state "lost". A client can then attach to the call at any other node, or at the same node
// after a restart. In the stock SDK, client.reattach() attaches with a new call object. But only the app
// can call it, and it fails while the old call object exists.

import { SelvageError } from "./errors.js"

/** A client of `@signalwire/js`, version 3. */
export interface CallClient {
  dial(params: any): Promise<any>
  reattach?(params: any): Promise<any>
  online?(params: any): Promise<any>
  handlePushNotification?(params: any): Promise<any>
}

/**
 * Returns a client whose calls outlive their server. The app uses the client and its calls as before. A
 * call keeps its listeners and its `rootElement`. Changing to another server takes one to six seconds. The
 * app first receives `media.reconnecting`, and then `room.joined` and `media.connected`, as at the
 * beginning of the call. If the change fails, the app receives `destroy`.
 *
 * If the version of the client cannot reattach, such as 3.27, the client is returned unchanged.
 */
export function keepCalls<C extends CallClient>(client: C): C {
  const { reattach } = client
  if (!reattach) return client
  const keep = (call: Call, params: Params) => new KeptCall(call, params, reattach).shown

  const handlers = new Map<Handler, Handler>() // the SDK compares them
  const keepAccepted = (handle: Handler): Handler => {
    const known = handlers.get(handle)
    if (known) return known
    const kept: Handler = (notification) => {
      const accept = async (params: Params) => keep(await notification.invite.accept(params), params)
      return handle({ ...notification, invite: { ...notification.invite, accept } })
    }
    handlers.set(handle, kept)
    return kept
  }

  return {
    ...client,
    dial: async (params: Params) => keep(await client.dial(params), params),
    reattach: async (params: Params) => keep(await reattach(params), params),
    online: (params: { incomingCallHandlers: Record<string, Handler> }) => {
      const all = Object.entries(params.incomingCallHandlers).map(([source, handle]) => [source, handle && keepAccepted(handle)])
      return client.online?.({ ...params, incomingCallHandlers: Object.fromEntries(all) })
    },
    handlePushNotification: (params: { incomingCallHandler?: Handler }) => {
      const handle = params.incomingCallHandler
      return client.handlePushNotification?.({ ...params, incomingCallHandler: handle && keepAccepted(handle) })
    },
  }
}

/**
 * Moves a call into the conference room at an address, such as `/public/standup`, with both sides. If the
 * address is null, the call leaves the room again, and the two sides talk to each other. The call keeps its
 * id, its record and its recordings. Its object gets `call.joined` and `room.joined` with the new members.
 *
 * @throws SelvageError with the code `not_movable`, `no_room`, `room_locked`, `room_full`, `room_not_open`,
 * `room_elsewhere`, `no_media` or `rate_limited`
 */
export async function moveCall(call: any, address: string | null): Promise<void> {
  const result = await (call as Call).executeAction({ method: "call.move", extraParams: { address: address ?? "" } })
  const refusal = result?.refusal
  if (!refusal) return
  throw new SelvageError(refusalCodes[refusal.code] ?? refusal.code, refusal.message, "The call continues as before.")
}

/** Codes of this SDK for codes of the server. */
const refusalCodes: Record<string, string> = { too_many_calls: "rate_limited" }

/** The storage key under which the SDK looks for the id of the call to attach to. */
const previousCall = "ci-SAT"

/** A call of an app, which uses one call object of the SDK after another. */
class KeptCall {
  /** The object that the app holds. It has the members of the current call object. */
  readonly shown: Call
  private listeners: { event: string; listener: Listener; inner: Listener }[] = []
  private joined = false // and so can be attached to

  constructor(
    private call: Call,
    private readonly params: Params,
    private readonly reattach: (params: Params) => Promise<Call>,
  ) {
    const own: Partial<Call> = {
      on: (event, listener) => this.listen(event, listener),
      once: (event, listener) => {
        const first: Listener = (...args) => {
          this.ignore(event, listener)
          listener(...args)
        }
        return this.listen(event, listener, first)
      },
      off: (event, listener) => this.ignore(event, listener),
      removeAllListeners: (event) => this.ignore(event),
    }
    this.shown = new Proxy(call, {
      get: (_, name) => {
        const value = Reflect.get(own, name) ?? Reflect.get(this.call, name)
        if (typeof value !== "function" || name in own) return value
        return (...args: unknown[]) => (this.call as any)[name](...args) // also after the call object has changed
      },
      set: (_, name, value) => Reflect.set(this.call, name, value),
    })
    this.watch(call)
  }

  private listen(event: string, listener: Listener, inner = listener): Call {
    this.listeners.push({ event, listener, inner })
    this.call.on(event, inner)
    return this.shown
  }

  private ignore(event?: string, listener?: Listener): Call {
    this.listeners = this.listeners.filter((l) => {
      if ((event && l.event !== event) || (listener && l.listener !== listener)) return true
      this.call.off(l.event, l.inner)
      return false
    })
    return this.shown
  }

  private watch(call: Call): void {
    call.on("room.subscribed", () => (this.joined = true))
    call.on("call.state", (e) => {
      const isOurs = e.call_id === call.callId && call === this.call // events of all calls come here
      if (e.call_state !== "lost" || !isOurs || !this.joined) return
      call.emit("media.reconnecting")
    })
    // The SDK sends this too, once no media arrives: its restart of ICE fails in Chromium. The SDK then
    // begins to reconnect, and must finish before this code attaches.
    call.on("media.reconnecting", () => queueMicrotask(() => void this.move(call)))
  }

  /** Attaches to the call with a new call object. */
  private async move(old: Call): Promise<void> {
    if (old !== this.call || !this.joined) return
    this.joined = false
    const id = old.callId
    const media = mediaOf(old)
    const stream = takeStream(old, media)
    for (const { event, inner } of this.listeners) old.off(event, inner)
    dispose(old)

    // Accepted calls have no destination, which version 3.28 requires. The server does not use it.
    const next = await this.reattach({ to: "/attach", ...this.params, ...media })
    this.call = next
    this.watch(next)
    for (const { event, inner } of this.listeners) next.on(event, inner)
    const { micId, camId, speakerId } = old.options
    Object.assign(next.options, { micId, camId, speakerId }, stream && { localStream: stream })
    const speaker = old.audioEl?.sinkId
    if (speaker) void next.audioEl?.setSinkId?.(speaker).catch(() => {})

    sessionStorage.setItem(previousCall, id) // start() reads it at once
    await next.start().catch(() => next.hangup().catch(() => {})) // which the app sees by its listeners
  }
}

/** Returns the options that request the media that the call currently has. */
function mediaOf(call: Call): Params {
  const sections = call.peer?.instance?.getTransceivers().filter((t) => t.mid !== null && t.direction !== "inactive") ?? []
  const has = (kind: string) => sections.some((t) => t.receiver.track.kind === kind)
  const { audio, video, negotiateAudio, negotiateVideo } = call.options
  return {
    ...(has("audio") ? { audio, negotiateAudio } : { audio: false, negotiateAudio: false }),
    ...(has("video") ? { video, negotiateVideo } : { video: false, negotiateVideo: false }),
  }
}

/**
 * Takes the microphone and the camera from a call object, for use by the next one. If one of them is off
 * because it is muted, it releases both and returns undefined. The SDK then opens what it needs.
 */
function takeStream(call: Call, media: Params): MediaStream | undefined {
  const all = call.localStream?.getTracks() ?? []
  const wanted = all.filter((t) => media[t.kind] && t.readyState === "live")
  const complete = ["audio", "video"].every((kind) => !media[kind] || wanted.some((t) => t.kind === kind))
  for (const t of all) if (!complete || !wanted.includes(t)) t.stop()
  return complete && wanted.length ? new MediaStream(wanted) : undefined
}

/** Ends a call object without telling the server, and without stopping the microphone and the camera. */
function dispose(call: Call): void {
  call.screenShareList?.forEach((screen) => void screen.leave())
  clearTimeout(call.peer?._resumeTimer) // it would hang up
  call.peer?.instance?.close()
  call.removeRTCWorkers?.() // they would take the answer to the next call object for theirs
  call.emit("destroy", call) // the SDK empties rootElement
  call.destroy()
}

type Params = Record<string, unknown>
type Listener = (...args: any[]) => void
type Handler = (notification: { invite: { accept(params: Params): Promise<Call> } }) => void

/** The used members of a call object. They include internals that versions 3.28 to 3.30 share. */
interface Call {
  readonly callId: string
  readonly options: Params
  readonly localStream?: MediaStream
  readonly audioEl?: HTMLAudioElement
  readonly screenShareList?: { leave(): Promise<void> }[]
  readonly peer?: { instance?: RTCPeerConnection; _resumeTimer?: number }
  on(event: string, listener: Listener): unknown
  once(event: string, listener: Listener): unknown
  off(event: string, listener?: Listener): unknown
  removeAllListeners(event?: string): unknown
  emit(event: string, ...args: unknown[]): unknown
  start(): Promise<void>
  hangup(): Promise<void>
  executeAction(params: Params): Promise<{ refusal?: { code: string; message: string } } | undefined>
  removeRTCWorkers?(): void // since 3.29; before, destroy() does this
  destroy(): void
}
