import { SelvageError, asError } from "./errors.js"
import { FabricClient, hostOf, type Address, type AddressQuery, type GuestToken, type List, type SubscriberInfo } from "./fabric.js"
import { ask } from "./http.js"
import type { Messages } from "./messages.js"
import { authorizeURL, discover, random, readCode, redeem, revoke, type Claims, type Metadata, type Tokens, type Transaction } from "./oidc.js"
import { Recordings } from "./recordings.js"
import { Tabs } from "./tabs.js"
import { closed, openPopup, visit } from "./windows.js"

export interface ClientOptions {
  /** The URL of the identity provider, such as `https://id.example.com`. */
  issuer: string
  /** The client id, as printed by `selvage client create --type spa`. */
  clientId: string
  /** The redirect URI of logins; by default the page's URL without query and fragment. */
  redirectUri?: string
  /** The redirect URI of silent logins in a hidden frame; by default redirectUri. */
  silentRedirectUri?: string
  /** The redirect URI after a logout. Without it, the server shows a page that confirms the logout. */
  postLogoutRedirectUri?: string
  /** The requested scopes; `openid profile email offline_access` by default. */
  scope?: string
  /** Where tokens are stored: in memory until the page closes, or in the tab's sessionStorage. */
  storage?: "memory" | "session"
  /** The URL of the fabric's API; by default the issuer's origin. */
  apiUrl?: string
  /** The id of the project, for recordings.get(id).url(). */
  projectId?: string
}

export interface LoginOptions {
  /** Use a popup window. Call login() directly in the click handler. */
  popup?: boolean
  /** `login` asks for the password again, `select_account` asks which account to use, `create` shows the registration page. */
  prompt?: string
  /** The email address to fill in. */
  loginHint?: string
  /** The maximum age of the login, in seconds. */
  maxAge?: number
  /** The requested authentication level. */
  acrValues?: string
  scope?: string
  /** Any data, such as the current view. It is returned in the event `signedin` and in appState. */
  appState?: unknown
}

export interface SubscriberToken {
  token: string
  host: string
  expiresAt: Date
}

/** The options of SignalWire() in `@signalwire/js`. */
export interface SignalWireOptions {
  host: string
  token: string
  onRefreshToken: () => Promise<string>
}

/** The data of each event. */
export interface Events {
  signedin: { user: Claims; appState?: unknown }
  signedout: undefined
  tokenrefreshed: { expiresAt: Date }
  error: SelvageError
}

/** Creates the client of an app that people sign in to. */
export const createClient = (options: ClientOptions) => new Client(options)

/** An app that people sign in to. Created by {@link createClient}. */
export class Client {
  /** The appState of login(), after the login returned. */
  appState: unknown
  /** The subscriber's recordings. */
  readonly recordings: Recordings
  /** The subscriber's messages. */
  readonly messages: Messages
  /** The fabric on behalf of the subscriber. */
  readonly fabric: FabricClient

  private readonly key: string // the key in sessionStorage
  private readonly base: string
  private readonly tabs: Tabs
  private held?: Tokens
  private flight?: Promise<Tokens>
  private found?: Promise<Metadata>
  private popup?: { state: string; back: (url: URL) => void }
  private readonly listeners: { [E in keyof Events]?: Set<(event: Events[E]) => void> } = {}

  constructor(private readonly options: ClientOptions) {
    const { issuer, clientId } = options ?? {}
    if (!issuer || !clientId) throw new SelvageError("bad_config", "createClient() needs an issuer and a clientId", "`selvage client create --type spa` prints the id; the issuer is the server's URL.")
    if (typeof crypto === "undefined" || !crypto.subtle) {
      throw new SelvageError("insecure_page", "browsers do not offer cryptography to pages on plain http", "Serve the app over https, or from localhost.")
    }
    this.base = issuer.replace(/\/+$/, "")
    this.key = `selvage.${clientId}`
    this.fabric = new FabricClient(() => this.getAccessToken(), options.apiUrl?.replace(/\/+$/, "") ?? new URL(this.base).origin)
    this.recordings = new Recordings(this.fabric, options.projectId)
    this.messages = this.fabric.messages
    if (this.keeps) this.held = read(sessionStorage, this.key)
    this.tabs = new Tabs(
      this.key,
      {
        callback: (url) => this.back(new URL(url)),
        signedOut: (login) => this.held && loginOf(this.held) === login && this.forget(),
        adopt: (tokens) => this.hold(tokens, true),
        shared: () => (this.keeps ? this.held : undefined),
      },
      this.keeps,
    )
  }

  /** The claims of the ID token of the person who is signed in. */
  get user(): Claims | undefined {
    return this.held?.claims
  }

  get isSignedIn(): boolean {
    return Boolean(this.held && (this.held.refresh || this.held.ends > Date.now()))
  }

  /** The granted scopes. */
  get scopes(): string[] {
    return this.held?.scope.split(" ").filter(Boolean) ?? []
  }

  /** Signs in. Without a popup, the browser leaves the page, and handleRedirect() finishes the login. */
  async login(o: LoginOptions = {}): Promise<void> {
    let popup: Window | undefined
    try {
      popup = o.popup ? openPopup() : undefined
      const t = this.begin(popup ? "p" : "r", this.options.redirectUri, o.appState)
      const url = await this.url(t, o)
      if (popup) return await this.inPopup(popup, t, url)
      prune(this.key)
      sessionStorage.setItem(`${this.key}.${t.state}`, JSON.stringify(t))
      location.assign(url)
      return await new Promise(() => {}) // the browser leaves the page
    } catch (err) {
      popup?.close()
      throw this.report(err)
    }
  }

  /**
   * Finishes a login on the page at the redirect URI. Returns whether a login opened the page. In the popup
   * or frame of a login, it passes the response to the page that started the login, and does not return.
   */
  async handleRedirect(url: string = location.href): Promise<boolean> {
    const answer = new URL(url)
    const state = answer.searchParams.get("state")
    if (!state || !(answer.searchParams.has("code") || answer.searchParams.has("error"))) return false
    if (/^[pf]\./.test(state)) {
      if (state[0] === "p") {
        this.tabs.tell({ callback: url })
        window.close()
      } // the outer page reads the frame's address
      return new Promise(() => {})
    }
    const entry = `${this.key}.${state}`
    const t = read<Transaction>(sessionStorage, entry)
    sessionStorage.removeItem(entry)
    clean(new URL(answer))
    try {
      if (!t) throw new SelvageError("callback_failed", "this tab did not start the login", "Call login() again: a callback works once, in the tab that started it.")
      await this.finish(t, answer)
      return true
    } catch (err) {
      throw this.report(err)
    }
  }

  /** Signs in without interaction if the browser is signed in to the server. Returns whether it was. */
  async loginSilently(o: Pick<LoginOptions, "loginHint" | "scope"> = {}): Promise<boolean> {
    try {
      await this.silently(o)
      return true
    } catch (err) {
      if (["login_required", "consent_required", "interaction_required", "account_selection_required"].includes((err as SelvageError).code)) return false
      throw this.report(err)
    }
  }

  /** Returns an access token that is valid for at least a minute, refreshed if necessary. */
  async getAccessToken(o: { fresh?: boolean } = {}): Promise<string> {
    const t = this.held
    if (!t) throw new SelvageError("not_signed_in", "nobody is signed in", "Call login(), or loginSilently() if the browser may have a login.")
    const left = t.ends - Date.now()
    if (!o.fresh && left > Math.min(60_000, t.life / 5)) return t.access
    try {
      return (await this.renew(t)).access
    } catch (err) {
      if (!o.fresh && left > 5_000 && ["network", "timeout", "server"].includes((err as SelvageError).code)) return t.access
      throw this.report(err)
    }
  }

  /** Returns the subscriber's token and the fabric's host, for the fabric's own SDKs. */
  async subscriberToken(): Promise<SubscriberToken> {
    const token = await this.getAccessToken()
    return { token, host: hostOf(token), expiresAt: new Date(this.held!.ends) }
  }

  /** Returns the options for SignalWire(): `SignalWire({ ...(await app.signalwireOptions()) })`. */
  async signalwireOptions(): Promise<SignalWireOptions> {
    const { host, token } = await this.subscriberToken()
    return { host, token, onRefreshToken: () => this.getAccessToken({ fresh: true }) }
  }

  /** Passes each new token to a SignalWire() client before the old one expires. Returns a function that stops this. */
  attach(client: { updateToken(token: string): unknown }): () => void {
    let timer: ReturnType<typeof setTimeout> | undefined
    let stopped = false
    const next = () => {
      clearTimeout(timer)
      if (!this.held || stopped) return
      const { held } = this
      const wait = held.ends - Date.now() - Math.min(60_000, held.life / 5)
      const again = () => {
        if (this.held !== held) return next()
        clearTimeout(timer)
        if (!stopped) timer = setTimeout(next, 5_000) // if the server is down, getAccessToken() may return the old token
      }
      timer = setTimeout(() => this.getAccessToken().then(again, again), Math.min(Math.max(wait, 0) + 100, 2 ** 31 - 1))
    }
    const off = this.on("tokenrefreshed", () => {
      next()
      void Promise.resolve(this.held && client.updateToken(this.held.access)).catch((err) => this.report(err))
    })
    next()
    return () => {
      stopped = true
      off()
      clearTimeout(timer)
    }
  }

  /** Returns the subscriber's own data. */
  me(): Promise<SubscriberInfo> {
    return this.fabric.getSubscriberInfo()
  }

  /** Returns the claims that the userinfo endpoint returns for the granted scopes. */
  async userInfo(): Promise<Record<string, unknown>> {
    const headers = { Authorization: `Bearer ${await this.getAccessToken()}` }
    return ask((await this.metadata()).userinfo_endpoint, { headers })
  }

  readonly addresses = {
    list: (query?: AddressQuery): List<Address> => this.fabric.addresses.list(query),
    get: (id: string): Promise<Address> => this.fabric.addresses.get(id),
  }

  /** Creates a token with which a guest can call only these addresses. */
  guestToken(addressIds: string[], expiresAt?: Date): Promise<GuestToken> {
    return this.fabric.guestToken(addressIds, expiresAt)
  }

  /** Signs out of the server and so of every app of this login. With `local`, signs out of this app only and stays on the page. */
  async logout(o: { local?: boolean } = {}): Promise<void> {
    const t = this.held
    if (!t) return
    try {
      const m = await this.metadata()
      if (o.local) {
        this.forget()
        return await revoke(m, this.options.clientId, t.refresh ?? t.access)
      }
      this.tabs.tell({ signedOut: loginOf(t) })
      this.forget()
      const url = new URL(m.end_session_endpoint)
      url.searchParams.set("id_token_hint", t.id)
      url.searchParams.set("client_id", this.options.clientId)
      if (this.options.postLogoutRedirectUri) url.searchParams.set("post_logout_redirect_uri", this.options.postLogoutRedirectUri)
      location.assign(url.href)
      await new Promise(() => {}) // the browser leaves the page
    } catch (err) {
      throw this.report(err)
    }
  }

  /** Adds a listener. Returns a function that removes it. */
  on<E extends keyof Events>(event: E, listener: (event: Events[E]) => void): () => void {
    const all = ((this.listeners[event] as Set<(event: Events[E]) => void> | undefined) ??= new Set() as never)
    all.add(listener)
    return () => void all.delete(listener)
  }

  private emit<E extends keyof Events>(event: E, value: Events[E]): void {
    this.listeners[event]?.forEach((tell) => tell(value))
  }

  private report(err: unknown): SelvageError {
    const e = asError(err)
    this.emit("error", e)
    return e
  }

  private get keeps(): boolean {
    return this.options.storage === "session"
  }

  private metadata(): Promise<Metadata> {
    this.found ??= discover(this.base).catch((err) => {
      this.found = undefined
      throw err
    })
    return this.found
  }

  private begin(kind: "p" | "r" | "f", redirectUri = location.origin + location.pathname, appState?: unknown): Transaction {
    return { state: `${kind}.${random(16)}`, nonce: random(16), verifier: random(), redirectUri, began: Date.now(), appState }
  }

  private async url(t: Transaction, o: LoginOptions): Promise<string> {
    return authorizeURL(await this.metadata(), t, {
      client_id: this.options.clientId,
      scope: o.scope ?? this.options.scope ?? "openid profile email offline_access",
      prompt: o.prompt,
      login_hint: o.loginHint,
      max_age: o.maxAge?.toString(),
      acr_values: o.acrValues,
    })
  }

  private async inPopup(popup: Window, t: Transaction, url: string): Promise<void> {
    const stop = new AbortController()
    try {
      const answer = new Promise<URL>((back) => (this.popup = { state: t.state, back }))
      popup.location.replace(url)
      await this.finish(t, await Promise.race([answer, closed(popup, stop.signal)]))
    } finally {
      stop.abort()
      this.popup = undefined
      popup.close()
    }
  }

  private back(url: URL): void {
    if (this.popup && url.searchParams.get("state") === this.popup.state) this.popup.back(url)
  }

  private async silently(o: LoginOptions, before?: Tokens): Promise<Tokens> {
    const t = this.begin("f", this.options.silentRedirectUri ?? this.options.redirectUri)
    return this.finish(t, await visit(await this.url(t, { ...o, prompt: "none" })), before)
  }

  /** Exchanges the code in a response for tokens, which may only replace tokens of the same subscriber. */
  private async finish(t: Transaction, answer: URL, before?: Tokens): Promise<Tokens> {
    const m = await this.metadata()
    const code = readCode(m, t, answer.searchParams)
    const form = { grant_type: "authorization_code", code, redirect_uri: t.redirectUri, code_verifier: t.verifier }
    const tokens = await redeem(m, this.options.clientId, form, undefined, t.nonce)
    if (before) {
      if (before.claims.sub === tokens.claims.sub) return tokens
      throw new SelvageError("login_required", "another person is now signed in in this browser", "Call login().")
    }
    this.appState = t.appState
    this.hold(tokens, false)
    this.emit("signedin", { user: tokens.claims, appState: t.appState })
    return tokens
  }

  /** Refreshes the tokens, only once for all waiting callers. */
  private renew(old: Tokens): Promise<Tokens> {
    this.flight ??= this.refresh(old).finally(() => (this.flight = undefined))
    return this.flight
  }

  private async refresh(old: Tokens): Promise<Tokens> {
    try {
      if (!old.refresh) return this.renewed(old, await this.silently({}, old))
      const m = await this.metadata()
      const by = () => redeem(m, this.options.clientId, { grant_type: "refresh_token", refresh_token: old.refresh! }, old)
      return this.renewed(old, this.keeps ? await this.tabs.replace(old, by) : await by())
    } catch (err) {
      const { code, message } = err as SelvageError
      if (code !== "invalid_grant" && code !== "login_required") throw err
      if (this.held === old) this.forget()
      throw new SelvageError("session_ended", message, "The login ended or was unused for too long: call login().", { cause: err })
    }
  }

  private renewed(old: Tokens, tokens: Tokens): Tokens {
    if (!this.held) throw new SelvageError("not_signed_in", "the person signed out in the meantime", "Call login().")
    if (this.held !== old) return this.held // somebody has signed in in the meantime, or another tab was faster
    this.hold(tokens, true)
    return tokens
  }

  private hold(tokens: Tokens, renewed: boolean): void {
    this.held = tokens
    if (this.keeps) sessionStorage.setItem(this.key, JSON.stringify(tokens))
    if (renewed) this.emit("tokenrefreshed", { expiresAt: new Date(tokens.ends) })
  }

  private forget(): void {
    this.held = undefined
    if (this.keeps) sessionStorage.removeItem(this.key)
    this.emit("signedout", undefined)
  }
}

/** Returns a unique name for a login. */
const loginOf = (t: Tokens) => `${t.claims.sub} ${t.claims.sid ?? ""}`

function read<T>(from: Storage, key: string): T | undefined {
  try {
    return JSON.parse(from.getItem(key) ?? "null") ?? undefined
  } catch {
    return undefined // not the SDK's own
  }
}

/** Removes logins that were started long ago but never finished. */
function prune(key: string): void {
  for (const name of Object.keys(sessionStorage)) {
    if (!name.startsWith(`${key}.`)) continue
    const { began = 0 } = read<Transaction>(sessionStorage, name) ?? {}
    if (began < Date.now() - 3_600_000) sessionStorage.removeItem(name)
  }
}

/** Removes the response to a login from the address bar. */
function clean(url: URL): void {
  for (const name of ["code", "state", "iss", "session_state", "error", "error_description"]) url.searchParams.delete(name)
  history.replaceState(history.state, "", url)
}
