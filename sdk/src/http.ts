import { SelvageError, type ErrorCode, type ParameterError } from "./errors.js"

const patience = 30_000

/** Asks, and gives the JSON of the answer, or undefined where there is none. */
export async function ask<T>(url: string, init: RequestInit = {}): Promise<T> {
  const answer = await open(url, { ...init, headers: { Accept: "application/json", ...init.headers } })
  if (answer.status === 204) return undefined as T
  return answer.json().catch((cause) => {
    throw new SelvageError("bad_answer", `${url} answered with something that is not JSON`, "Is this address a selvage server?", { status: answer.status, cause })
  })
}

/** Asks, and gives an answer that is well. */
export async function open(url: string, init: RequestInit = {}): Promise<Response> {
  const stop = new AbortController()
  const timer = setTimeout(() => stop.abort(), patience)
  let answer: Response
  try {
    answer = await fetch(url, { credentials: "omit", ...init, signal: stop.signal })
  } catch (cause) {
    throw stop.signal.aborted
      ? new SelvageError("timeout", `${origin(url)} did not answer within ${patience / 1000} seconds`, "Try again.", { cause })
      : new SelvageError(
          "network",
          `no answer from ${origin(url)}`,
          "Is the server running, and does this browser trust its certificate? Open the address in a tab to see; `selvage ca install` has a local one trusted.",
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
  400: ["invalid", "The request is wrong: see the message."],
  401: ["unauthorized", "The token has expired, was revoked, or lacks a right: sign in again."],
  403: ["forbidden", "This token may not do that."],
  404: ["not_found", "There is no such thing, or this token does not reach it."],
  409: ["conflict", "It was changed meanwhile: read it again."],
  422: ["invalid", "A value is wrong: see `errors`."],
  429: ["rate_limited", "Too many requests: wait for `retryAfter` seconds."],
}

interface Refusal {
  error?: string
  error_description?: string
  message?: string
  errors?: ParameterError[]
}

/** Makes an error of an answer in any of the server's shapes. */
async function refusal(url: string, answer: Response): Promise<SelvageError> {
  const body: Refusal = (await answer.json().catch(() => null)) ?? {}
  const { status, headers } = answer
  let [code, hint] = statuses[status] ?? (status < 500 ? ["refused", "See `status`."] : ["server", "The server has a fault: try again, and look for `requestId` in its log."])
  if (body.error && /^[a-z_]+$/.test(body.error)) [code, hint] = [body.error, hintOf(body.error)] // RFC 6749, section 5.2
  const message = body.error_description ?? body.errors?.map((e) => e.message).join("; ") ?? body.message ?? body.error ?? answer.statusText
  const wait = Number(headers.get("Retry-After"))
  return new SelvageError(code, `${new URL(url, location.href).pathname}: ${status} ${message}`, hint, {
    status,
    requestId: headers.get("X-Request-Id") ?? undefined,
    retryAfter: wait || undefined,
    errors: body.errors,
  })
}

const hints: Record<string, string> = {
  access_denied: "Whoever was asked did not allow it.",
  account_selection_required: "Call login(): this needs a page, on which somebody picks one of several accounts.",
  consent_required: "Call login(): this needs a page, on which the subscriber allows it.",
  interaction_required: "Call login(): this needs a page.",
  invalid_client: "Is clientId right, and is the client of the type spa? `selvage client show` tells.",
  invalid_grant: "The login is over, or the code was used before: call login().",
  invalid_scope: "The client may not ask for one of these scopes: `selvage client update --scope` lets it.",
  login_required: "Nobody is signed in in this browser, or it keeps the cookie back, as it does where app and server are not of the same site: call login().",
  temporarily_unavailable: "Try again in a moment.",
  unauthorized_client: "The client is not registered for this: `selvage client show` tells what for.",
}

/** Says what to do about an error code of OAuth. */
export const hintOf = (code: string) => hints[code] ?? "The message says what the server did not like."
