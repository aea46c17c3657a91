/**
 * An error, with a `code` for programs and a `hint` for the developer.
 *
 * The SDK's own codes are listed below. Error codes of OAuth 2.0 and OpenID Connect
 * (`login_required`, `access_denied`, `invalid_request` …) are passed on unchanged.
 */
export declare class SelvageError extends Error {
    /** The kind of error. */
    readonly code: ErrorCode;
    /** How to fix it, in a sentence. */
    readonly hint: string;
    /** The HTTP status, if there was a response. */
    readonly status?: number;
    /** The server's id of the request, which is also in its log. */
    readonly requestId?: string;
    /** Seconds to wait before a retry, if the server sent them. */
    readonly retryAfter?: number;
    /** The invalid parameters, if `code` is `invalid`. */
    readonly errors?: readonly ParameterError[];
    constructor(code: ErrorCode, message: string, hint: string, more?: ErrorDetails);
}
export type ErrorCode = "bad_answer" | "bad_config" | "bad_token" | "callback_failed" | "forbidden" | "insecure_page" | "invalid" | "network" | "not_found" | "not_signed_in" | "popup_blocked" | "popup_closed" | "rate_limited" | "server" | "session_ended" | "timeout" | "unauthorized" | (string & {});
/** An error in one parameter. */
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
/** Converts anything that was thrown to a SelvageError. */
export declare function asError(err: unknown): SelvageError;
