/** The used members of the discovery document (OpenID Connect Discovery 1.0, section 3). */
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
/** The tokens from a login or a refresh. */
export interface Tokens {
    access: string;
    refresh?: string;
    id: string;
    scope: string;
    /** When the access token expires, and for how long it is valid, in milliseconds by this machine's clock. */
    ends: number;
    life: number;
    claims: Claims;
}
/** The state of a login request until its response arrives. */
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
/** Reads the discovery document, which must name the same issuer (section 4.3). */
export declare function discover(issuer: string): Promise<Metadata>;
/** Returns the URL that requests a code, with PKCE (RFC 7636), a state and a nonce. */
export declare function authorizeURL(m: Metadata, t: Transaction, more: Record<string, string | undefined>): Promise<string>;
/** Returns the code in the response to a login, or throws the error in it. The response must name the requested issuer (RFC 9207). */
export declare function readCode(m: Metadata, t: Transaction, answer: URLSearchParams): string;
/** Sends a request to the token endpoint, as a client without a secret. */
export declare function redeem(m: Metadata, clientId: string, form: Record<string, string>, before?: Tokens, nonce?: string): Promise<Tokens>;
/** Revokes a refresh token with all tokens that came from it, or an access token (RFC 7009). */
export declare function revoke(m: Metadata, clientId: string, token: string): Promise<void>;
