import { type Tokens } from "./oidc.js";
/** What the tabs of an app tell one another. */
type Message = {
    callback: string;
} | {
    signedOut: string;
} | {
    renewed: string;
    tokens: Tokens;
} | {
    wanted: string;
    by: string;
} | {
    told: string;
    tokens?: Tokens;
};
/** What a tab does about them. */
export interface Listener {
    callback(url: string): void;
    signedOut(login: string): void;
    /** Takes tokens that another tab has got. */
    adopt(tokens: Tokens): void;
    /** Gives what is held now, where it may be shared. */
    shared(): Tokens | undefined;
}
/**
 * The tabs of one app in one browser.
 *
 * A tab that was duplicated has the refresh token of the first, which only one of them may use: the server
 * takes a second use for a theft and ends both. So one at a time refreshes, and asks the others before it does
 * whether the token was used already.
 */
export declare class Tabs {
    private readonly name;
    private readonly listener;
    private readonly channel?;
    private readonly used;
    private readonly waiting;
    constructor(name: string, listener: Listener, shares: boolean);
    tell(message: Message): void;
    private hear;
    /** Replaces tokens by others, in one tab at a time, and tells the other tabs. */
    replace(old: Tokens, by: () => Promise<Tokens>): Promise<Tokens>;
    /** Asks the other tabs, if there are any, for what a refresh token gave. */
    private ask;
    private locked;
}
export {};
