import { Messages } from "./messages.js";
/** An address that can be called. */
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
/** A subscriber's own data. */
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
/** The addresses to list, and their order. */
export interface AddressQuery {
    type?: Address["type"];
    displayName?: string;
    name?: string;
    sortBy?: "name" | "created_at";
    sortOrder?: "asc" | "desc";
    /** The number of items per request; 50 by default. */
    pageSize?: number;
}
/** A list that is loaded page by page during iteration. */
export interface List<T> extends AsyncIterable<T> {
    /** Iterates over pages. */
    pages(): AsyncGenerator<T[], void>;
    /** Loads all items. */
    all(): Promise<T[]>;
}
/** A token, or a function that returns a valid one. */
export type TokenSource = string | (() => string | Promise<string>);
export interface FabricOptions {
    /** The token of a subscriber, guest or invite. */
    token: TokenSource;
    /**
     * The host of the fabric, such as `puc.example.com`: requests go to `https://fabric.example.com`.
     * A URL is used unchanged. The default is the host in the token's header.
     */
    host?: string;
}
/** Creates a client for the fabric's HTTP API. It opens a socket only for `messages.on()`. */
export declare function Fabric(options: FabricOptions): Promise<FabricClient>;
/** Returns the host in the header of a fabric token. */
export declare function hostOf(token: string): string;
/** Decodes a part of a token without verifying it. */
export declare function decode<T>(token: string, part: number): T;
/** The fabric, used on behalf of the holder of a token. Created by {@link Fabric}. */
export declare class FabricClient {
    private readonly token;
    /** The base URL of requests. */
    readonly base: string;
    /** Messages to and from other addresses. */
    readonly messages: Messages;
    /** Returns the subscriber's own data. */
    getSubscriberInfo(): Promise<SubscriberInfo>;
    readonly addresses: {
        /** Lists the addresses that the token can call. */
        list: (q?: AddressQuery) => List<Address>;
        /** Returns an address by its id. */
        get: (id: string) => Promise<Address>;
    };
    readonly devices: {
        /** Registers a device for push notifications. */
        register: (type: "iOS" | "Android" | "Desktop", token: string) => Promise<Device>;
        /** Removes a device. */
        unregister: (id: string) => Promise<void>;
    };
    /** Creates a token with which a guest can call only these addresses. It is valid for two hours by default. */
    guestToken(addressIds: string[], expiresAt?: Date): Promise<GuestToken>;
    /** Creates an invite to one of the subscriber's own addresses. */
    inviteToken(addressId: string, expiresAt?: Date): Promise<{
        token: string;
    }>;
}
