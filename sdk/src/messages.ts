import type { FabricClient, List } from "./fabric.js"
import { random } from "./oidc.js"

/** A message. `conversation_id` is the address with which you send and list: that of the other person, or of the room. */
export interface Message {
  id: string
  conversation_id: string
  from_address_id: string
  user_id: string
  user_name: string
  text: string
  /** When it was sent, in Unix milliseconds. */
  ts: number
}

export interface Conversation {
  /** The address of the other person, or of the room. */
  id: string
  name: string
  created_at: number
  last_message_at: number
}

type Listener = (message: Message) => void

const path = "/api/fabric/messages"
const conversations = "/api/fabric/conversations"
const silence = 30_000 // the server pings every 10 seconds

/** The messages of a subscriber or guest. */
export class Messages {
  private readonly listeners = new Set<Listener>()
  private readonly seen = new Set<string>()
  private socket?: WebSocket
  private heard = 0 // the server's time when it last sent something
  private missed = 0 // since when messages may be missing; 0 means that none are
  private wait = 0

  /** @internal */
  constructor(private readonly fabric: FabricClient) {}

  /** Sends a message to an address: a person's, or a room's. If no response arrives, it is sent once more, with the same key. */
  async send(addressId: string, text: string): Promise<Message> {
    const body = { conversation_id: addressId, text, key: random(16) }
    const post = () => this.fabric.ask<Message>(path, body)
    return post().catch((err) => {
      if (!["network", "timeout", "server"].includes(err.code)) throw err
      return post()
    })
  }

  /** Lists the messages of a conversation, newest first. Without an address, those of all conversations. */
  list(addressId?: string, pageSize?: number): List<Message> {
    return this.fabric.list(addressId ? `${conversations}/${encodeURIComponent(addressId)}/messages` : path, { page_size: pageSize })
  }

  /** Lists the conversations, newest first. */
  conversations(): List<Conversation> {
    return this.fabric.list(conversations, {})
  }

  /** Makes the subscriber a member of a room, so that it receives the room's messages. Sending does so, too. */
  async join(addressId: string): Promise<void> {
    await this.fabric.ask(`${conversations}/join`, { conversation_id: addressId })
  }

  /**
   * Calls the listener for each new message of every conversation, also your own ones from other devices. After
   * a lost connection, the listener gets what it missed. Returns a function that removes the listener.
   */
  on(listener: Listener): () => void {
    this.listeners.add(listener)
    if (!this.socket) this.connect()
    return () => {
      if (this.listeners.delete(listener) && !this.listeners.size) this.socket?.close()
    }
  }

  private connect(): void {
    const socket = (this.socket = new WebSocket(this.fabric.base.replace(/^http/, "ws")))
    const send = (message: object) => socket.readyState === 1 && socket.send(JSON.stringify({ jsonrpc: "2.0", ...message }))
    let timer: ReturnType<typeof setTimeout>
    const alive = () => {
      clearTimeout(timer)
      timer = setTimeout(() => socket.close(), silence)
    }
    alive()
    socket.onopen = async () => {
      try {
        const params = { version: { major: 4, minor: 0, revision: 0 }, authentication: { jwt_token: await this.fabric.access() } }
        send({ id: "connect", method: "signalwire.connect", params })
      } catch {
        socket.close() // nobody is signed in now
      }
    }
    socket.onmessage = ({ data }) => {
      alive()
      const { id, method, params, result } = JSON.parse(data)
      if (method) send({ id, result: params?.timestamp ? { timestamp: params.timestamp } : {} })
      else if (!result) socket.close()
      else if (id === "connect") {
        const since = (this.missed ||= this.heard)
        this.heard = Date.now()
        const complete = () => {
          if (this.socket === socket) this.missed = this.wait = 0
        }
        if (since) void this.catchUp(since).then(complete, () => socket.close())
        else complete()
      }
      if (params?.timestamp) this.heard = params.timestamp * 1000
      if (params?.event_type === "conversation.message") this.emit(params.params)
    }
    socket.onclose = () => {
      clearTimeout(timer)
      this.socket = undefined
      if (!this.listeners.size) return void (this.heard = this.missed = 0)
      setTimeout(() => this.listeners.size && !this.socket && this.connect(), this.wait)
      this.wait = Math.min(this.wait * 2 + 500, silence)
    }
  }

  /** Emits the messages that were sent while there was no connection. */
  private async catchUp(since: number): Promise<void> {
    const missed: Message[] = []
    for await (const m of this.list()) {
      if (m.ts < since - silence) break
      missed.unshift(m)
    }
    missed.forEach((m) => this.emit(m))
  }

  private emit(message: Message): void {
    if (this.seen.has(message.id)) return
    this.seen.add(message.id)
    for (const id of this.seen) if (this.seen.size > 1000) this.seen.delete(id)
    this.listeners.forEach((tell) => tell(message))
  }
}
