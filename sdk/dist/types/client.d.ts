import { SelvageError } from "./errors.js";
import { FabricClient, type Address, type AddressQuery, type GuestToken, type List, type SubscriberInfo } from "./fabric.js";
import { type Claims } from "./oidc.js";
import { Recordings } from "./recordings.js";
export interface ClientOptions {
    /** Where the identity provider is, such as `https://id.example.com`. */
    issuer: string;
    /** The client's id, which `selvage client create --type spa` prints. */
    clientId: string;
    /** Where logins come back to: the page's own address without query and fragment, if it is not said. */
    redirectUri?: string;
    /** Where silent logins come back to, in a hidden frame: redirectUri, if it is not said. */
    silentRedirectUri?: string;
    /** Where a logout comes back to. Without it, the server's page says that one is signed out. */
    postLogoutRedirectUri?: string;
    /** What to ask for: `openid profile email offline_access`, if it is not said. */
    scope?: string;
    /** Where tokens are: in memory, and gone with the page, or in the tab's sessionStorage. */
    storage?: "memory" | "session";
    /** Where the fabric's API is: the issuer's origin, if it is not said. */
    apiUrl?: string;
    /** Whose recordings they are, for recordings.get(id).url(). */
    projectId?: string;
}
export interface LoginOptions {
    /** In a window of its own. Call it at once when a button is clicked. */
    popup?: boolean;
    /** `login` asks for the password again, `select_account` who it is, `create` shows registration. */
    prompt?: string;
    /** The e-mail to begin with. */
    loginHint?: string;
    /** The oldest login that will do, in seconds. */
    maxAge?: number;
    /** How strong a login must be. */
    acrValues?: string;
    scope?: string;
    /** Comes back in the event `signedin`, and in appState: where the person was, say. */
    appState?: unknown;
}
export interface SubscriberToken {
    token: string;
    host: string;
    expiresAt: Date;
}
/** What SignalWire() of `@signalwire/js` takes. */
export interface SignalWireOptions {
    host: string;
    token: string;
    onRefreshToken: () => Promise<string>;
}
/** What events tell. */
export interface Events {
    signedin: {
        user: Claims;
        appState?: unknown;
    };
    signedout: undefined;
    tokenrefreshed: {
        expiresAt: Date;
    };
    error: SelvageError;
}
/** Makes the client of an app that people sign in to. */
export declare const createClient: (options: ClientOptions) => Client;
/** An app that people sign in to. Made by {@link createClient}. */
export declare class Client {
    private readonly options;
    /** What login() was given as appState, once it is back. */
    appState: unknown;
    /** The subscriber's recordings. */
    readonly recordings: Recordings;
    /** The fabric, as the subscriber. */
    readonly fabric: FabricClient;
    private readonly key;
    private readonly base;
    private readonly tabs;
    private held?;
    private flight?;
    private found?;
    private popup?;
    private readonly listeners;
    constructor(options: ClientOptions);
    /** Who is signed in, as the ID token says. */
    get user(): Claims | undefined;
    get isSignedIn(): boolean;
    /** The scopes that were granted. */
    get scopes(): string[];
    /** Signs in. Without a popup the page goes away, and handleRedirect() goes on when it is back. */
    login(o?: LoginOptions): Promise<void>;
    /**
     * Finishes a login, on the page that it comes back to. True if it did; false if the page was opened otherwise.
     * In the popup or the frame of a login it hands over to the page that began, and does not return.
     */
    handleRedirect(url?: string): Promise<boolean>;
    /** Signs in without asking anybody, by the login that the browser has: true if there was one. */
    loginSilently(o?: Pick<LoginOptions, "loginHint" | "scope">): Promise<boolean>;
    /** Gives an access token that is good for a minute at least; it is renewed before it ends. */
    getAccessToken(o?: {
        fresh?: boolean;
    }): Promise<string>;
    /** Gives what the fabric's own SDKs take: a subscriber's token, and where it is good. */
    subscriberToken(): Promise<SubscriberToken>;
    /** Gives what SignalWire() takes: `SignalWire({ ...(await app.signalwireOptions()) })`. */
    signalwireOptions(): Promise<SignalWireOptions>;
    /** Gives a client of SignalWire() each new token, before the old one ends. Gives what stops that. */
    attach(client: {
        updateToken(token: string): unknown;
    }): () => void;
    /** Gives what the subscriber may know of itself. */
    me(): Promise<SubscriberInfo>;
    /** Gives the claims of the userinfo endpoint, which the scopes let the app have. */
    userInfo(): Promise<Record<string, unknown>>;
    readonly addresses: {
        list: (query?: AddressQuery) => List<Address>;
        get: (id: string) => Promise<Address>;
    };
    /** Makes a token for a guest, who reaches these addresses alone. */
    guestToken(addressIds: string[], expiresAt?: Date): Promise<GuestToken>;
    /** Signs out of the server, and so of every app of this login. With `local`, of this app alone, and the page stays. */
    logout(o?: {
        local?: boolean;
    }): Promise<void>;
    /** Listens. Gives what ends it. */
    on<E extends keyof Events>(event: E, listener: (event: Events[E]) => void): () => void;
    private emit;
    private report;
    private get keeps();
    private metadata;
    private begin;
    private url;
    private inPopup;
    private back;
    private silently;
    /** Trades the code of an answer for tokens, which may take the place of others of the same subscriber. */
    private finish;
    /** Gets new tokens, once for all who wait for them. */
    private renew;
    private refresh;
    private renewed;
    private hold;
    private forget;
}
