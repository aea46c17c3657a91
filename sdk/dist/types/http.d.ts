/** Sends a request and returns the JSON of the response, or undefined if it is empty. */
export declare function ask<T>(url: string, init?: RequestInit): Promise<T>;
/** Sends a request and returns a successful response. Throws an error otherwise. */
export declare function open(url: string, init?: RequestInit): Promise<Response>;
/** Returns a hint for an OAuth error code. */
export declare const hintOf: (code: string) => string;
