import { SelvageError } from "./errors.js"
import { decode } from "./fabric.js"
import { ask, hintOf, open } from "./http.js"

/** The used members of the discovery document (OpenID Connect Discovery 1.0, section 3). */
export interface Metadata {
  issuer: string
  authorization_endpoint: string
  token_endpoint: string
  revocation_endpoint: string
  end_session_endpoint: string
  userinfo_endpoint: string
}

/** Claims of an ID token. */
export interface Claims {
  iss: string
  sub: string
  aud: string | string[]
  exp: number
  iat: number
  sid?: string
  nonce?: string
  auth_time?: number
  acr?: string
  amr?: string[]
  [claim: string]: unknown
}

/** The tokens from a login or a refresh. */
export interface Tokens {
  access: string
  refresh?: string
  id: string
  scope: string
  /** When the access token expires, and for how long it is valid, in milliseconds by this machine's clock. */
  ends: number
  life: number
  claims: Claims
}

/** The state of a login request until its response arrives. */
export interface Transaction {
  state: string
  nonce: string
  verifier: string
  redirectUri: string
  began: number
  appState?: unknown
}

export const random = (bytes = 32) => base64url(crypto.getRandomValues(new Uint8Array(bytes)))

export const base64url = (bytes: Uint8Array) => btoa(String.fromCharCode(...bytes)).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "")

export async function digest(text: string): Promise<string> {
  return base64url(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text))))
}

/** Reads the discovery document, which must name the same issuer (section 4.3). */
export async function discover(issuer: string): Promise<Metadata> {
  const base = issuer.replace(/\/+$/, "")
  const found = await ask<Metadata>(base + "/.well-known/openid-configuration")
  if (found?.issuer?.replace(/\/+$/, "") !== base) {
    throw new SelvageError("bad_config", `the server at ${base} has the issuer ${found?.issuer}`, "Use the issuer that `selvage serve` is configured with (--auth-url).")
  }
  return found
}

/** Returns the URL that requests a code, with PKCE (RFC 7636), a state and a nonce. */
export async function authorizeURL(m: Metadata, t: Transaction, more: Record<string, string | undefined>): Promise<string> {
  const url = new URL(m.authorization_endpoint)
  const query: Record<string, string | undefined> = {
    response_type: "code",
    redirect_uri: t.redirectUri,
    state: t.state,
    nonce: t.nonce,
    code_challenge: await digest(t.verifier),
    code_challenge_method: "S256",
    ...more,
  }
  for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, value)
  return url.href
}

/** Returns the code in the response to a login, or throws the error in it. The response must name the requested issuer (RFC 9207). */
export function readCode(m: Metadata, t: Transaction, answer: URLSearchParams): string {
  const failed = (message: string) => new SelvageError("callback_failed", message, "Call login() again: a callback works once, in the browser that started it.")
  if (answer.get("state") !== t.state) throw failed("the response to the login has a different state")
  if (answer.get("iss") !== m.issuer) throw failed("the response to the login is not from the requested issuer")
  const error = answer.get("error")
  if (error) throw new SelvageError(error, answer.get("error_description") ?? error, hintOf(error))
  const code = answer.get("code")
  if (!code) throw failed("the response to the login has no code")
  return code
}

interface TokenAnswer {
  access_token: string
  refresh_token?: string
  id_token?: string
  expires_in?: number
  scope?: string
}

/** Sends a request to the token endpoint, as a client without a secret. */
export async function redeem(m: Metadata, clientId: string, form: Record<string, string>, before?: Tokens, nonce?: string): Promise<Tokens> {
  const now = Date.now()
  const got = await ask<TokenAnswer>(m.token_endpoint, { method: "POST", body: new URLSearchParams({ client_id: clientId, ...form }) })
  const id = got.id_token ?? before?.id
  if (!got.access_token || !id) throw new SelvageError("bad_answer", "the token endpoint returned no tokens", "Does the client's scope include openid?")
  const life = (got.expires_in ?? 300) * 1000
  return {
    access: got.access_token,
    refresh: got.refresh_token ?? before?.refresh,
    id,
    scope: got.scope ?? before?.scope ?? "",
    ends: now + life,
    life,
    claims: got.id_token ? checked(got.id_token, m.issuer, clientId, before?.claims, nonce) : before!.claims,
  }
}

/** Revokes a refresh token with all tokens that came from it, or an access token (RFC 7009). */
export async function revoke(m: Metadata, clientId: string, token: string): Promise<void> {
  await open(m.revocation_endpoint, { method: "POST", body: new URLSearchParams({ client_id: clientId, token }) })
}

/**
 * Returns the claims of an ID token (OpenID Connect Core 1.0, sections 3.1.3.7 and 12.2). It came directly from
 * the token endpoint over TLS, so its signature need not be verified.
 */
function checked(token: string, issuer: string, clientId: string, before?: Claims, nonce?: string): Claims {
  const wrong = (what: string) => new SelvageError("bad_answer", `the ID token has ${what}`, "Check the server and the clocks.")
  const c = decode<Claims>(token, 1)
  if (c.iss !== issuer) throw wrong("a different issuer")
  if (![c.aud].flat().includes(clientId)) throw wrong("a different audience")
  if (!(c.exp * 1000 > Date.now() - 5 * 60_000)) throw wrong("expired")
  if (nonce && c.nonce !== nonce) throw wrong("a different nonce")
  if (before && c.sub !== before.sub) throw wrong("a different subject than before")
  return c
}
