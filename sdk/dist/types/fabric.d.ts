/** An address: where something can be called. */
export interface Address {
    id: string;
    resource_id: string;
    name: string;
    display_name: string;
    type: "app" | "room" | "call" | "subscriber";
    cover_url: string | null;
    preview_url: string | null;
    locked: boolean;
    channels: {
        audio?: string;
        messaging?: string;
        video?: string;
    };
    created_at: string;
}
/** What a subscriber may know of itself. */
export interface SubscriberInfo {
    id: string;
    email: string;
    first_name?: string | null;
    last_name?: string | null;
    display_name?: string | null;
    job_title?: string | null;
    time_zone?: string | null;
    country?: string | null;
    region?: string | null;
    company_name?: string | null;
    push_notification_key: string;
    app_settings?: {
        display_name: string;
        scopes: string[];
    } | null;
    fabric_addresses: Address[];
}
export interface Device {
    id: string;
    device_type: string;
    device_token: string;
    device_name?: string | null;
    date_registered: string;
    push_notification_key: string;
}
export interface GuestToken {
    token: string;
    refresh_token: string;
}
/** Which addresses, and in which order. */
export interface AddressQuery {
    type?: Address["type"];
    displayName?: string;
    name?: string;
    sortBy?: "name" | "created_at";
    sortOrder?: "asc" | "desc";
    /** How many come with each request: 50, if it is not said. */
    pageSize?: number;
}
/** A list that is read page by page, as it is walked through. */
export interface List<T> extends AsyncIterable<T> {
    /** The pages themselves. */
    pages(): AsyncGenerator<T[], void>;
    /** All of it at once. */
    all(): Promise<T[]>;
}
/** A token, or what gives the one that is good now. */
export type TokenSource = string | (() => string | Promise<string>);
export interface FabricOptions {
    /** A subscriber's, guest's or invitation's token. */
    token: TokenSource;
    /**
     * The host of the fabric, such as `puc.example.com`: requests go to `https://fabric.example.com`.
     * A URL is taken as it is. Without it, the host in the token's header is taken.
     */
    host?: string;
}
/** Makes a client of the fabric's HTTP API. No socket is opened. */
export declare function Fabric(options: FabricOptions): Promise<FabricClient>;
/** Reads the host out of the header of a fabric token. */
export declare function hostOf(token: string): string;
/** Gives a part of a token, which is not verified. */
export declare function decode<T>(token: string, part: number): T;
/** The fabric, as whom a token stands for. Made by {@link Fabric}. */
export declare class FabricClient {
    private readonly token;
    /** Where requests go. */
    readonly base: string;
    /** Gives what the subscriber may know of itself. */
    getSubscriberInfo(): Promise<SubscriberInfo>;
    readonly addresses: {
        /** Lists the addresses that the token reaches. */
        list: (q?: AddressQuery) => List<Address>;
        /** Finds an address by its id. */
        get: (id: string) => Promise<Address>;
    };
    readonly devices: {
        /** Registers a device for push notifications. */
        register: (type: "iOS" | "Android" | "Desktop", token: string) => Promise<Device>;
        /** Takes a device back. */
        unregister: (id: string) => Promise<void>;
    };
    /** Makes a token for a guest, who reaches these addresses alone, for two hours if it is not said. */
    guestToken(addressIds: string[], expiresAt?: Date): Promise<GuestToken>;
    /** Makes a token that invites to one of the subscriber's own addresses. */
    inviteToken(addressId: string, expiresAt?: Date): Promise<{
        token: string;
    }>;
}
