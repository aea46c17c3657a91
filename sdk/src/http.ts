import { SelvageError, type ErrorCode, type ParameterError } from "./errors.js"

const patience = 30_000

/** Sends a request and returns the JSON of the response, or undefined if it is empty. */
export async function ask<T>(url: string, init: RequestInit = {}): Promise<T> {
  const answer = await open(url, { ...init, headers: { Accept: "application/json", ...init.headers } })
  if (answer.status === 204) return undefined as T
  return answer.json().catch((cause) => {
    throw new SelvageError("bad_answer", `${url} did not return JSON`, "Is this address a selvage server?", { status: answer.status, cause })
  })
}

/** Sends a request and returns a successful response. Throws an error otherwise. */
export async function open(url: string, init: RequestInit = {}): Promise<Response> {
  const stop = new AbortController()
  const timer = setTimeout(() => stop.abort(), patience)
  let answer: Response
  try {
    answer = await fetch(url, { credentials: "omit", ...init, signal: stop.signal })
  } catch (cause) {
    throw stop.signal.aborted
      ? new SelvageError("timeout", `${origin(url)} did not respond within ${patience / 1000} seconds`, "Try again.", { cause })
      : new SelvageError(
          "network",
          `no response from ${origin(url)}`,
          "Is the server running, and does this browser trust its certificate? Open the address in a tab to check. `selvage ca install` makes this machine trust a local one.",
          { cause },
        )
  } finally {
    clearTimeout(timer)
  }
  if (!answer.ok) throw await refusal(url, answer)
  return answer
}

const origin = (url: string) => new URL(url, location.href).origin

const statuses: Record<number, [ErrorCode, string]> = {
  400: ["invalid", "The request is invalid: see the message."],
  401: ["unauthorized", "The token expired, was revoked, or lacks a permission: sign in again."],
  403: ["forbidden", "This token does not permit that."],
  404: ["not_found", "The object does not exist, or this token has no access to it."],
  409: ["conflict", "It was changed in the meantime: read it again."],
  422: ["invalid", "A value is invalid: see `errors`."],
  429: ["rate_limited", "Too many requests: wait for `retryAfter` seconds."],
}

interface Refusal {
  error?: string
  error_description?: string
  message?: string
  errors?: (ParameterError & { detail?: string })[] // the API of recordings has details instead of messages
}

/** Converts an error response from any of the server's APIs to a SelvageError. */
async function refusal(url: string, answer: Response): Promise<SelvageError> {
  const body: Refusal = (await answer.json().catch(() => null)) ?? {}
  const { status, headers } = answer
  let [code, hint] = statuses[status] ?? (status < 500 ? ["refused", "See `status`."] : ["server", "The server failed: try again, and look for `requestId` in its log."])
  if (body.error && /^[a-z_]+$/.test(body.error)) [code, hint] = [body.error, hintOf(body.error)] // RFC 6749, section 5.2
  const errors = body.errors?.map((e) => ({ ...e, message: e.message ?? e.detail }))
  const message = body.error_description ?? errors?.map((e) => e.message).join("; ") ?? body.message ?? body.error ?? answer.statusText
  const wait = Number(headers.get("Retry-After"))
  return new SelvageError(code, `${new URL(url, location.href).pathname}: ${status} ${message}`, hint, {
    status,
    requestId: headers.get("X-Request-Id") ?? undefined,
    retryAfter: wait || undefined,
    errors,
  })
}

const hints: Record<string, string> = {
  access_denied: "The subscriber denied the request.",
  account_selection_required: "Call login(): the subscriber has to choose an account on a page.",
  consent_required: "Call login(): the subscriber has to consent on a page.",
  interaction_required: "Call login(): this requires a page.",
  invalid_client: "Is clientId correct, and does the client have the type spa? Check with `selvage client show`.",
  invalid_grant: "The login ended, or the code was used before: call login().",
  invalid_scope: "The client may not request one of these scopes: allow it with `selvage client update --scope`.",
  login_required: "Nobody is signed in in this browser, or it withholds the cookie because app and server are on different sites: call login().",
  temporarily_unavailable: "Try again in a moment.",
  unauthorized_client: "The client is not registered for this: see `selvage client show`.",
}

/** Returns a hint for an OAuth error code. */
export const hintOf = (code: string) => hints[code] ?? "See the message."
