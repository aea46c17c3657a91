import { SelvageError } from "./errors.js"
import { ask } from "./http.js"
import { Messages } from "./messages.js"

/** An address that can be called. */
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

/** A subscriber's own data. */
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

/** The addresses to list, and their order. */
export interface AddressQuery {
  type?: Address["type"]
  displayName?: string
  name?: string
  sortBy?: "name" | "created_at"
  sortOrder?: "asc" | "desc"
  /** The number of items per request; 50 by default. */
  pageSize?: number
}

/** A list that is loaded page by page during iteration. */
export interface List<T> extends AsyncIterable<T> {
  /** Iterates over pages. */
  pages(): AsyncGenerator<T[], void>
  /** Loads all items. */
  all(): Promise<T[]>
}

/** A token, or a function that returns a valid one. */
export type TokenSource = string | (() => string | Promise<string>)

export interface FabricOptions {
  /** The token of a subscriber, guest or invite. */
  token: TokenSource
  /**
   * The host of the fabric, such as `puc.example.com`: requests go to `https://fabric.example.com`.
   * A URL is used unchanged. The default is the host in the token's header.
   */
  host?: string
}

/** Creates a client for the fabric's HTTP API. It opens a socket only for `messages.on()`. */
export async function Fabric(options: FabricOptions): Promise<FabricClient> {
  if (!options?.token) throw new SelvageError("bad_config", "Fabric() needs a token", "Pass a subscriber's access token: Fabric({ token }).")
  const { token } = options
  const source = typeof token === "function" ? token : () => token
  return new FabricClient(source, baseOf(options.host ?? hostOf(await source())))
}

/** Returns the host in the header of a fabric token. */
export function hostOf(token: string): string {
  try {
    const { ch } = decode<{ ch?: string }>(token, 0)
    if (ch) return ch
  } catch {
    // not a fabric token
  }
  throw new SelvageError("bad_token", "the token has no host", "It is not a fabric token: configure the client with `--access-token fabric`, or pass the host.")
}

/** Decodes a part of a token without verifying it. */
export function decode<T>(token: string, part: number): T {
  const raw = atob((token.split(".")[part] ?? "").replace(/-/g, "+").replace(/_/g, "/"))
  return JSON.parse(new TextDecoder().decode(Uint8Array.from(raw, (c) => c.charCodeAt(0))))
}

/** Returns the base URL of the HTTP API for a fabric host, which browser SDKs derive from the host. */
function baseOf(host: string): string {
  if (/^https?:\/\//.test(host)) return host.replace(/\/+$/, "")
  const bare = host.replace(/^wss?:\/\//, "")
  const dot = bare.indexOf(".")
  if (dot < 0 || /^\d+(\.\d+){3}(:|$)/.test(bare)) {
    throw new SelvageError("bad_config", `${host} is not a fabric host`, "It needs a first label, which `fabric` replaces, such as `puc.localhost:8443`. A URL is used unchanged.")
  }
  return `https://fabric${bare.slice(dot)}`
}

/** The fabric, used on behalf of the holder of a token. Created by {@link Fabric}. */
export class FabricClient {
  /** @internal */
  constructor(
    private readonly token: () => string | Promise<string>,
    /** The base URL of requests. */
    readonly base: string,
  ) {}

  /** Messages to and from other addresses. */
  readonly messages = new Messages(this)

  /** Returns the subscriber's own data. */
  getSubscriberInfo(): Promise<SubscriberInfo> {
    return this.ask("/api/fabric/subscriber/info")
  }

  readonly addresses = {
    /** Lists the addresses that the token can call. */
    list: (q: AddressQuery = {}): List<Address> =>
      this.list("/api/fabric/addresses", { type: q.type, display_name: q.displayName, name: q.name, sort_by: q.sortBy, sort_order: q.sortOrder, page_size: q.pageSize }),
    /** Returns an address by its id. */
    get: (id: string): Promise<Address> => this.ask(`/api/fabric/addresses/${encodeURIComponent(id)}`),
  }

  readonly devices = {
    /** Registers a device for push notifications. */
    register: (type: "iOS" | "Android" | "Desktop", token: string): Promise<Device> =>
      this.ask("/subscriber/devices", { device_type: type, device_token: token }),
    /** Removes a device. */
    unregister: (id: string): Promise<void> => this.ask(`/subscriber/devices/${encodeURIComponent(id)}`, undefined, "DELETE"),
  }

  /** Creates a token with which a guest can call only these addresses. It is valid for two hours by default. */
  guestToken(addressIds: string[], expiresAt?: Date): Promise<GuestToken> {
    return this.ask("/api/fabric/guests/tokens", { allowed_addresses: addressIds, expire_at: seconds(expiresAt) })
  }

  /** Creates an invite to one of the subscriber's own addresses. */
  inviteToken(addressId: string, expiresAt?: Date): Promise<{ token: string }> {
    return this.ask("/api/fabric/subscriber/invites", { address_id: addressId, expires_at: seconds(expiresAt) })
  }

  /** Returns a valid token. @internal */
  async access(): Promise<string> {
    return this.token()
  }

  /** Returns the Authorization header. @internal */
  async bearer(): Promise<Record<string, string>> {
    return { Authorization: `Bearer ${await this.token()}` }
  }

  /** Sends a request with the token. A body is posted. @internal */
  async ask<T>(path: string, body?: unknown, method = body ? "POST" : "GET"): Promise<T> {
    const headers = await this.bearer()
    if (body) headers["Content-Type"] = "application/json"
    return ask<T>(this.base + path, { method, headers, body: body ? JSON.stringify(body) : undefined })
  }

  /** Iterates over a list. Links are only followed on the same server, so that no other one gets the token. @internal */
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
