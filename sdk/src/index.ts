/**
 * Sign subscribers in from a browser, get their tokens, and use the fabric on their behalf.
 *
 * @packageDocumentation
 */
export { keepCalls, moveCall } from "./calls.js"
export type { CallClient } from "./calls.js"
export { createClient, Client } from "./client.js"
export type { ClientOptions, Events, LoginOptions, SignalWireOptions, SubscriberToken } from "./client.js"
export { SelvageError } from "./errors.js"
export type { ErrorCode, ParameterError } from "./errors.js"
export { Fabric, FabricClient } from "./fabric.js"
export type { Address, AddressQuery, Device, FabricOptions, GuestToken, List, SubscriberInfo, TokenSource } from "./fabric.js"
export { Messages } from "./messages.js"
export type { Conversation, Message } from "./messages.js"
export type { Claims } from "./oidc.js"
export { Recording, Recordings } from "./recordings.js"
export type { Format, RecordingInfo } from "./recordings.js"

/** The version of this SDK, which is the version of the server that serves it. */
export const version: string = __VERSION__
declare const __VERSION__: string
