/**
 * What went wrong, for programs (`code`) and for the person who mends it (`hint`).
 *
 * Codes of ours are listed below; the error codes of OAuth 2.0 and OpenID Connect
 * (`login_required`, `access_denied`, `invalid_request` …) are passed on as they come.
 */
export class SelvageError extends Error {
  /** What kind of error it is. */
  readonly code: ErrorCode
  /** What to do about it, in a sentence. */
  readonly hint: string
  /** The HTTP status, where there was an answer. */
  readonly status?: number
  /** The server's id of the request, which its log has too. */
  readonly requestId?: string
  /** Seconds to wait before the next try, where the server said so. */
  readonly retryAfter?: number
  /** What is wrong with each parameter, where `code` is `invalid`. */
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
  | "bad_answer" // the server answered with what is not its API
  | "bad_config" // an option is missing or wrong
  | "bad_token" // the token is none of the fabric's
  | "callback_failed" // the answer to a login was not the expected one
  | "forbidden"
  | "insecure_page" // the page is not served by https or from localhost
  | "invalid" // 422: see errors
  | "network" // no answer: offline, CORS, or a certificate that is not trusted
  | "not_found"
  | "not_signed_in"
  | "popup_blocked"
  | "popup_closed"
  | "rate_limited"
  | "server" // 5xx
  | "session_ended" // the login is over: sign in again
  | "timeout"
  | "unauthorized"
  | (string & {})

/** What is wrong with one parameter. */
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

/** Makes an error of whatever was thrown. */
export function asError(err: unknown): SelvageError {
  return err instanceof SelvageError
    ? err
    : new SelvageError("bad_answer", String((err as Error)?.message ?? err), "This is a fault of the SDK or of the page: see `cause`.", { cause: err })
}
