import { digest, random, type Tokens } from "./oidc.js"

/** The messages between the tabs of an app. */
type Message =
  | { callback: string } // a popup returned from the login at this URL
  | { signedOut: string } // a login ended: its subject and sid
  | { renewed: string; tokens: Tokens } // the refresh token with this digest was used and returned these tokens
  | { wanted: string; by: string } // asks which tab used the refresh token with this digest
  | { told: string; tokens?: Tokens } // the response to wanted

/** The functions that react to messages from other tabs. */
export interface Listener {
  callback(url: string): void
  signedOut(login: string): void
  /** Stores tokens that another tab received. */
  adopt(tokens: Tokens): void
  /** Returns the current tokens, if they may be shared. */
  shared(): Tokens | undefined
}

const patience = 2_000

/**
 * The tabs of one app in one browser.
 *
 * A duplicated tab has the same refresh token as the original, but only one of them may use it: the server
 * treats a second use as theft and revokes both. So only one tab refreshes at a time, and first asks the
 * others whether the token was used already.
 */
export class Tabs {
  private readonly channel?: BroadcastChannel
  private readonly used = new Set<string>() // digests of refresh tokens that led to the current tokens
  private readonly waiting = new Map<string, (tokens?: Tokens) => void>()

  constructor(
    private readonly name: string,
    private readonly listener: Listener,
    shares: boolean,
  ) {
    if (typeof BroadcastChannel !== "undefined") {
      this.channel = new BroadcastChannel(name)
      this.channel.onmessage = (e: MessageEvent<Message>) => void this.hear(e.data)
    }
    // The tab holds this lock until it is closed, so that the tabs can be counted.
    if (shares) void navigator.locks?.request(name + ".tab", { mode: "shared" }, () => new Promise(() => {}))
  }

  tell(message: Message): void {
    this.channel?.postMessage(message)
  }

  private async hear(m: Message): Promise<void> {
    if ("callback" in m) return this.listener.callback(m.callback)
    if ("signedOut" in m) return this.listener.signedOut(m.signedOut)
    if ("told" in m) return this.waiting.get(m.told)?.(m.tokens)
    const held = this.listener.shared()
    const mine = held?.refresh && (await digest(held.refresh))
    if ("wanted" in m) {
      this.tell({ told: m.by, tokens: this.used.has(m.wanted) && m.wanted !== mine ? held : undefined })
    } else if (mine === m.renewed) {
      this.used.add(mine)
      this.listener.adopt(m.tokens)
    }
  }

  /** Replaces tokens, in one tab at a time, and notifies the other tabs. */
  async replace(old: Tokens, by: () => Promise<Tokens>): Promise<Tokens> {
    return this.locked(async () => {
      const mine = await digest(old.refresh!)
      const held = this.listener.shared()
      if (held && held.refresh !== old.refresh) return held // another tab's arrived in the meantime
      const theirs = await this.ask(mine)
      const tokens = theirs ?? (await by())
      this.used.add(mine)
      if (!theirs) this.tell({ renewed: mine, tokens })
      return tokens
    })
  }

  /** Asks the other tabs, if any, for the tokens that one of them got for a refresh token. */
  private async ask(wanted: string): Promise<Tokens | undefined> {
    const locks = await navigator.locks?.query()
    let others = locks ? locks.held!.filter((l) => l.name === this.name + ".tab").length - 1 : Infinity
    if (!this.channel || others < 1) return undefined
    const by = random(8)
    try {
      return await new Promise<Tokens | undefined>((resolve) => {
        this.waiting.set(by, (tokens) => (tokens || --others < 1) && resolve(tokens))
        this.tell({ wanted, by })
        setTimeout(resolve, patience) // a frozen tab does not respond
      })
    } finally {
      this.waiting.delete(by)
    }
  }

  private locked<T>(do_: () => Promise<T>): Promise<T> {
    return navigator.locks ? (navigator.locks.request(this.name + ".refresh", do_) as Promise<T>) : leased(this.name + ".refresh", do_)
  }
}

const lease = 40_000 // longer than the wait for other tabs and a request together

/** Replaces a lock, in browsers without Web Locks, with an entry that expires. */
async function leased<T>(name: string, do_: () => Promise<T>): Promise<T> {
  const me = random(8)
  const holder = () => (localStorage.getItem(name) ?? "0 ").split(" ")
  for (;;) {
    const [until, who] = holder()
    if (Number(until) < Date.now() || who === me) {
      localStorage.setItem(name, `${Date.now() + lease} ${me}`)
      await new Promise((r) => setTimeout(r, 50)) // the last writer owns it
      if (holder()[1] === me) break
    }
    await new Promise((r) => setTimeout(r, 50))
  }
  try {
    return await do_()
  } finally {
    if (holder()[1] === me) localStorage.removeItem(name)
  }
}
