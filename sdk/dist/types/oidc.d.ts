/** What of the discovery document is used (OpenID Connect Discovery 1.0, section 3). */
export interface Metadata {
    issuer: string;
    authorization_endpoint: string;
    token_endpoint: string;
    revocation_endpoint: string;
    end_session_endpoint: string;
    userinfo_endpoint: string;
}
/** Claims of an ID token. */
export interface Claims {
    iss: string;
    sub: string;
    aud: string | string[];
    exp: number;
    iat: number;
    sid?: string;
    nonce?: string;
    auth_time?: number;
    acr?: string;
    amr?: string[];
    [claim: string]: unknown;
}
/** What a login or a refresh has given. */
export interface Tokens {
    access: string;
    refresh?: string;
    id: string;
    scope: string;
    /** When the access token ends, and how long it was to live, in milliseconds of this machine's clock. */
    ends: number;
    life: number;
    claims: Claims;
}
/** What is remembered of a request for a login until its answer comes. */
export interface Transaction {
    state: string;
    nonce: string;
    verifier: string;
    redirectUri: string;
    began: number;
    appState?: unknown;
}
export declare const random: (bytes?: number) => string;
export declare const base64url: (bytes: Uint8Array) => string;
export declare function digest(text: string): Promise<string>;
/** Reads the discovery document, which must be that of the issuer (section 4.3). */
export declare function discover(issuer: string): Promise<Metadata>;
/** Gives the URL that asks for a code, with PKCE (RFC 7636), a state and a nonce. */
export declare function authorizeURL(m: Metadata, t: Transaction, more: Record<string, string | undefined>): Promise<string>;
/** Gives the code in an answer to a login, or its error. The answer's issuer is the one that was asked (RFC 9207). */
export declare function readCode(m: Metadata, t: Transaction, answer: URLSearchParams): string;
/** Asks the token endpoint, as a client without a secret. */
export declare function redeem(m: Metadata, clientId: string, form: Record<string, string>, before?: Tokens, nonce?: string): Promise<Tokens>;
/** Takes back a refresh token with all that came of it, or an access token (RFC 7009). */
export declare function revoke(m: Metadata, clientId: string, token: string): Promise<void>;
