/**
 * An error, with a `code` for programs and a `hint` for the developer.
 *
 * The SDK's own codes are listed below. Error codes of OAuth 2.0 and OpenID Connect
 * (`login_required`, `access_denied`, `invalid_request` …) are passed on unchanged.
 */
export class SelvageError extends Error {
  /** The kind of error. */
  readonly code: ErrorCode
  /** How to fix it, in a sentence. */
  readonly hint: string
  /** The HTTP status, if there was a response. */
  readonly status?: number
  /** The server's id of the request, which is also in its log. */
  readonly requestId?: string
  /** Seconds to wait before a retry, if the server sent them. */
  readonly retryAfter?: number
  /** The invalid parameters, if `code` is `invalid`. */
  readonly errors?: readonly ParameterError[]

  constructor(code: ErrorCode, message: string, hint: string, more: ErrorDetails = {}) {
    super(message, { cause: more.cause })
    this.name = "SelvageError"
    this.code = code
    this.hint = hint
    this.status = more.status
    this.requestId = more.requestId
    this.retryAfter = more.retryAfter
    this.errors = more.errors
  }
}

export type ErrorCode =
  | "bad_answer" // the response is not from selvage's API
  | "bad_config" // an option is missing or wrong
  | "bad_token" // the token is not a fabric token
  | "callback_failed" // the response to a login was unexpected
  | "forbidden"
  | "insecure_page" // the page is not served by https or from localhost
  | "invalid" // 422: see errors
  | "network" // no response: offline, CORS, or an untrusted certificate
  | "not_found"
  | "not_signed_in"
  | "popup_blocked"
  | "popup_closed"
  | "rate_limited"
  | "server" // 5xx
  | "session_ended" // the login ended: sign in again
  | "timeout"
  | "unauthorized"
  | (string & {})

/** An error in one parameter. */
export interface ParameterError {
  code: string
  message: string
  attribute?: string | null
}

export interface ErrorDetails {
  status?: number
  requestId?: string
  retryAfter?: number
  errors?: readonly ParameterError[]
  cause?: unknown
}

/** Converts anything that was thrown to a SelvageError. */
export function asError(err: unknown): SelvageError {
  return err instanceof SelvageError
    ? err
    : new SelvageError("bad_answer", String((err as Error)?.message ?? err), "This is a bug in the SDK or in the page: see `cause`.", { cause: err })
}
