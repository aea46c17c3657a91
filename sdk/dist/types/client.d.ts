import { SelvageError } from "./errors.js";
import { FabricClient, type Address, type AddressQuery, type GuestToken, type List, type SubscriberInfo } from "./fabric.js";
import type { Messages } from "./messages.js";
import { type Claims } from "./oidc.js";
import { Recordings } from "./recordings.js";
export interface ClientOptions {
    /** The URL of the identity provider, such as `https://id.example.com`. */
    issuer: string;
    /** The client id, as printed by `selvage client create --type spa`. */
    clientId: string;
    /** The redirect URI of logins; by default the page's URL without query and fragment. */
    redirectUri?: string;
    /** The redirect URI of silent logins in a hidden frame; by default redirectUri. */
    silentRedirectUri?: string;
    /** The redirect URI after a logout. Without it, the server shows a page that confirms the logout. */
    postLogoutRedirectUri?: string;
    /** The requested scopes; `openid profile email offline_access` by default. */
    scope?: string;
    /** Where tokens are stored: in memory until the page closes, or in the tab's sessionStorage. */
    storage?: "memory" | "session";
    /** The URL of the fabric's API; by default the issuer's origin. */
    apiUrl?: string;
    /** The id of the project, for recordings.get(id).url(). */
    projectId?: string;
}
export interface LoginOptions {
    /** Use a popup window. Call login() directly in the click handler. */
    popup?: boolean;
    /** `login` asks for the password again, `select_account` asks which account to use, `create` shows the registration page. */
    prompt?: string;
    /** The email address to fill in. */
    loginHint?: string;
    /** The maximum age of the login, in seconds. */
    maxAge?: number;
    /** The requested authentication level. */
    acrValues?: string;
    scope?: string;
    /** Any data, such as the current view. It is returned in the event `signedin` and in appState. */
    appState?: unknown;
}
export interface SubscriberToken {
    token: string;
    host: string;
    expiresAt: Date;
}
/** The options of SignalWire() in `@signalwire/js`. */
export interface SignalWireOptions {
    host: string;
    token: string;
    onRefreshToken: () => Promise<string>;
}
/** The data of each event. */
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
/** Creates the client of an app that people sign in to. */
export declare const createClient: (options: ClientOptions) => Client;
/** An app that people sign in to. Created by {@link createClient}. */
export declare class Client {
    private readonly options;
    /** The appState of login(), after the login returned. */
    appState: unknown;
    /** The subscriber's recordings. */
    readonly recordings: Recordings;
    /** The subscriber's messages. */
    readonly messages: Messages;
    /** The fabric on behalf of the subscriber. */
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
    /** The claims of the ID token of the person who is signed in. */
    get user(): Claims | undefined;
    get isSignedIn(): boolean;
    /** The granted scopes. */
    get scopes(): string[];
    /** Signs in. Without a popup, the browser leaves the page, and handleRedirect() finishes the login. */
    login(o?: LoginOptions): Promise<void>;
    /**
     * Finishes a login on the page at the redirect URI. Returns whether a login opened the page. In the popup
     * or frame of a login, it passes the response to the page that started the login, and does not return.
     */
    handleRedirect(url?: string): Promise<boolean>;
    /** Signs in without interaction if the browser is signed in to the server. Returns whether it was. */
    loginSilently(o?: Pick<LoginOptions, "loginHint" | "scope">): Promise<boolean>;
    /** Returns an access token that is valid for at least a minute, refreshed if necessary. */
    getAccessToken(o?: {
        fresh?: boolean;
    }): Promise<string>;
    /** Returns the subscriber's token and the fabric's host, for the fabric's own SDKs. */
    subscriberToken(): Promise<SubscriberToken>;
    /** Returns the options for SignalWire(): `SignalWire({ ...(await app.signalwireOptions()) })`. */
    signalwireOptions(): Promise<SignalWireOptions>;
    /** Passes each new token to a SignalWire() client before the old one expires. Returns a function that stops this. */
    attach(client: {
        updateToken(token: string): unknown;
    }): () => void;
    /** Returns the subscriber's own data. */
    me(): Promise<SubscriberInfo>;
    /** Returns the claims that the userinfo endpoint returns for the granted scopes. */
    userInfo(): Promise<Record<string, unknown>>;
    readonly addresses: {
        list: (query?: AddressQuery) => List<Address>;
        get: (id: string) => Promise<Address>;
    };
    /** Creates a token with which a guest can call only these addresses. */
    guestToken(addressIds: string[], expiresAt?: Date): Promise<GuestToken>;
    /** Signs out of the server and so of every app of this login. With `local`, signs out of this app only and stays on the page. */
    logout(o?: {
        local?: boolean;
    }): Promise<void>;
    /** Adds a listener. Returns a function that removes it. */
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
    /** Exchanges the code in a response for tokens, which may only replace tokens of the same subscriber. */
    private finish;
    /** Refreshes the tokens, only once for all waiting callers. */
    private renew;
    private refresh;
    private renewed;
    private hold;
    private forget;
}
