import { type Tokens } from "./oidc.js";
/** The messages between the tabs of an app. */
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
/** The functions that react to messages from other tabs. */
export interface Listener {
    callback(url: string): void;
    signedOut(login: string): void;
    /** Stores tokens that another tab received. */
    adopt(tokens: Tokens): void;
    /** Returns the current tokens, if they may be shared. */
    shared(): Tokens | undefined;
}
/**
 * The tabs of one app in one browser.
 *
 * A duplicated tab has the same refresh token as the original, but only one of them may use it: the server
 * treats a second use as theft and revokes both. So only one tab refreshes at a time, and first asks the
 * others whether the token was used already.
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
    /** Replaces tokens, in one tab at a time, and notifies the other tabs. */
    replace(old: Tokens, by: () => Promise<Tokens>): Promise<Tokens>;
    /** Asks the other tabs, if any, for the tokens that one of them got for a refresh token. */
    private ask;
    private locked;
}
export {};
