/** Asks, and gives the JSON of the answer, or undefined where there is none. */
export declare function ask<T>(url: string, init?: RequestInit): Promise<T>;
/** Asks, and gives an answer that is well. */
export declare function open(url: string, init?: RequestInit): Promise<Response>;
/** Says what to do about an error code of OAuth. */
export declare const hintOf: (code: string) => string;
