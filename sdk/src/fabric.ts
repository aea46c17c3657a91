import { SelvageError } from "./errors.js"
import { ask } from "./http.js"

/** An address: where something can be called. */
export interface Address {
  id: string
  resource_id: string
  name: string
  display_name: string
  type: "app" | "room" | "call" | "subscriber"
  cover_url: string | null
  preview_url: string | null
  locked: boolean
  channels: { audio?: string; messaging?: string; video?: string }
  created_at: string
}

/** What a subscriber may know of itself. */
export interface SubscriberInfo {
  id: string
  email: string
  first_name?: string | null
  last_name?: string | null
  display_name?: string | null
  job_title?: string | null
  time_zone?: string | null
  country?: string | null
  region?: string | null
  company_name?: string | null
  push_notification_key: string
  app_settings?: { display_name: string; scopes: string[] } | null
  fabric_addresses: Address[]
}

export interface Device {
  id: string
  device_type: string
  device_token: string
  device_name?: string | null
  date_registered: string
  push_notification_key: string
}

export interface GuestToken {
  token: string
  refresh_token: string
}

/** Which addresses, and in which order. */
export interface AddressQuery {
  type?: Address["type"]
  displayName?: string
  name?: string
  sortBy?: "name" | "created_at"
  sortOrder?: "asc" | "desc"
  /** How many come with each request: 50, if it is not said. */
  pageSize?: number
}

/** A list that is read page by page, as it is walked through. */
export interface List<T> extends AsyncIterable<T> {
  /** The pages themselves. */
  pages(): AsyncGenerator<T[], void>
  /** All of it at once. */
  all(): Promise<T[]>
}

/** A token, or what gives the one that is good now. */
export type TokenSource = string | (() => string | Promise<string>)

export interface FabricOptions {
  /** A subscriber's, guest's or invitation's token. */
  token: TokenSource
  /**
   * The host of the fabric, such as `puc.example.com`: requests go to `https://fabric.example.com`.
   * A URL is taken as it is. Without it, the host in the token's header is taken.
   */
  host?: string
}

/** Makes a client of the fabric's HTTP API. No socket is opened. */
export async function Fabric(options: FabricOptions): Promise<FabricClient> {
  if (!options?.token) throw new SelvageError("bad_config", "Fabric() needs a token", "Give it the access token of a subscriber: Fabric({ token }).")
  const { token } = options
  const source = typeof token === "function" ? token : () => token
  return new FabricClient(source, baseOf(options.host ?? hostOf(await source())))
}

/** Reads the host out of the header of a fabric token. */
export function hostOf(token: string): string {
  try {
    const { ch } = decode<{ ch?: string }>(token, 0)
    if (ch) return ch
  } catch {
    // it is no token of the fabric
  }
  throw new SelvageError("bad_token", "the token names no host", "It is no fabric token: the client must get those (`--access-token fabric`). Or give the host.")
}

/** Gives a part of a token, which is not verified. */
export function decode<T>(token: string, part: number): T {
  const raw = atob((token.split(".")[part] ?? "").replace(/-/g, "+").replace(/_/g, "/"))
  return JSON.parse(new TextDecoder().decode(Uint8Array.from(raw, (c) => c.charCodeAt(0))))
}

/** Gives the base of the HTTP API of a host, by the rule that browser SDKs have. */
function baseOf(host: string): string {
  if (/^https?:\/\//.test(host)) return host.replace(/\/+$/, "")
  const bare = host.replace(/^wss?:\/\//, "")
  const dot = bare.indexOf(".")
  if (dot < 0 || /^\d+(\.\d+){3}(:|$)/.test(bare)) {
    throw new SelvageError("bad_config", `${host} is no host of a fabric`, "It needs a first label, which `fabric` takes the place of: `puc.localhost:8443`. A URL is taken as it is.")
  }
  return `https://fabric${bare.slice(dot)}`
}

/** The fabric, as whom a token stands for. Made by {@link Fabric}. */
export class FabricClient {
  /** @internal */
  constructor(
    private readonly token: () => string | Promise<string>,
    /** Where requests go. */
    readonly base: string,
  ) {}

  /** Gives what the subscriber may know of itself. */
  getSubscriberInfo(): Promise<SubscriberInfo> {
    return this.ask("/api/fabric/subscriber/info")
  }

  readonly addresses = {
    /** Lists the addresses that the token reaches. */
    list: (q: AddressQuery = {}): List<Address> =>
      this.list("/api/fabric/addresses", { type: q.type, display_name: q.displayName, name: q.name, sort_by: q.sortBy, sort_order: q.sortOrder, page_size: q.pageSize }),
    /** Finds an address by its id. */
    get: (id: string): Promise<Address> => this.ask(`/api/fabric/addresses/${encodeURIComponent(id)}`),
  }

  readonly devices = {
    /** Registers a device for push notifications. */
    register: (type: "iOS" | "Android" | "Desktop", token: string): Promise<Device> =>
      this.ask("/subscriber/devices", { device_type: type, device_token: token }),
    /** Takes a device back. */
    unregister: (id: string): Promise<void> => this.ask(`/subscriber/devices/${encodeURIComponent(id)}`, undefined, "DELETE"),
  }

  /** Makes a token for a guest, who reaches these addresses alone, for two hours if it is not said. */
  guestToken(addressIds: string[], expiresAt?: Date): Promise<GuestToken> {
    return this.ask("/api/fabric/guests/tokens", { allowed_addresses: addressIds, expire_at: seconds(expiresAt) })
  }

  /** Makes a token that invites to one of the subscriber's own addresses. */
  inviteToken(addressId: string, expiresAt?: Date): Promise<{ token: string }> {
    return this.ask("/api/fabric/subscriber/invites", { address_id: addressId, expires_at: seconds(expiresAt) })
  }

  /** Gives the header that says as whom a request is made. @internal */
  async bearer(): Promise<Record<string, string>> {
    return { Authorization: `Bearer ${await this.token()}` }
  }

  /** Asks with the token; a body is posted. @internal */
  async ask<T>(path: string, body?: unknown, method = body ? "POST" : "GET"): Promise<T> {
    const headers = await this.bearer()
    if (body) headers["Content-Type"] = "application/json"
    return ask<T>(this.base + path, { method, headers, body: body ? JSON.stringify(body) : undefined })
  }

  /** Walks through a list. Links are followed on our own server alone, which the token is for. @internal */
  list<T, U = T>(path: string, query: Record<string, string | number | undefined>, make = (raw: T) => raw as unknown as U): List<U> {
    const asked = new URLSearchParams()
    for (const [name, value] of Object.entries(query)) if (value !== undefined) asked.set(name, String(value))
    const first = `${path}?${asked}`.replace(/\?$/, "")
    const pages = async function* (this: FabricClient) {
      for (let next: string | undefined = first; next; ) {
        const page: { data: T[]; links: { next?: string } } = await this.ask(next)
        yield page.data.map(make)
        const link: URL | undefined = page.links?.next ? new URL(page.links.next, this.base) : undefined
        next = link && link.pathname + link.search
      }
    }.bind(this)
    return {
      pages,
      async *[Symbol.asyncIterator]() {
        for await (const page of pages()) yield* page
      },
      async all() {
        const found: U[] = []
        for await (const page of pages()) found.push(...page)
        return found
      },
    }
  }
}

const seconds = (at?: Date) => at && Math.floor(at.getTime() / 1000)
