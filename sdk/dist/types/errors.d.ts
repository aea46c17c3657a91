/**
 * What went wrong, for programs (`code`) and for the person who mends it (`hint`).
 *
 * Codes of ours are listed below; the error codes of OAuth 2.0 and OpenID Connect
 * (`login_required`, `access_denied`, `invalid_request` …) are passed on as they come.
 */
export declare class SelvageError extends Error {
    /** What kind of error it is. */
    readonly code: ErrorCode;
    /** What to do about it, in a sentence. */
    readonly hint: string;
    /** The HTTP status, where there was an answer. */
    readonly status?: number;
    /** The server's id of the request, which its log has too. */
    readonly requestId?: string;
    /** Seconds to wait before the next try, where the server said so. */
    readonly retryAfter?: number;
    /** What is wrong with each parameter, where `code` is `invalid`. */
    readonly errors?: readonly ParameterError[];
    constructor(code: ErrorCode, message: string, hint: string, more?: ErrorDetails);
}
export type ErrorCode = "bad_answer" | "bad_config" | "bad_token" | "callback_failed" | "forbidden" | "insecure_page" | "invalid" | "network" | "not_found" | "not_signed_in" | "popup_blocked" | "popup_closed" | "rate_limited" | "server" | "session_ended" | "timeout" | "unauthorized" | (string & {});
/** What is wrong with one parameter. */
export interface ParameterError {
    code: string;
    message: string;
    attribute?: string | null;
}
export interface ErrorDetails {
    status?: number;
    requestId?: string;
    retryAfter?: number;
    errors?: readonly ParameterError[];
    cause?: unknown;
}
/** Makes an error of whatever was thrown. */
export declare function asError(err: unknown): SelvageError;
