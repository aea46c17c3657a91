/** A client of `@signalwire/js`, version 3. */
export interface CallClient {
    dial(params: any): Promise<any>;
    reattach?(params: any): Promise<any>;
    online?(params: any): Promise<any>;
    handlePushNotification?(params: any): Promise<any>;
}
/**
 * Returns a client whose calls outlive their server. The app uses the client and its calls as before. A
 * call keeps its listeners and its `rootElement`. Changing to another server takes one to six seconds. The
 * app first receives `media.reconnecting`, and then `room.joined` and `media.connected`, as at the
 * beginning of the call. If the change fails, the app receives `destroy`.
 *
 * If the version of the client cannot reattach, such as 3.27, the client is returned unchanged.
 */
export declare function keepCalls<C extends CallClient>(client: C): C;
/**
 * Moves a call into the conference room at an address, such as `/public/standup`, with both sides. If the
 * address is null, the call leaves the room again, and the two sides talk to each other. The call keeps its
 * id, its record and its recordings. Its object gets `call.joined` and `room.joined` with the new members.
 *
 * @throws SelvageError with the code `not_movable`, `no_room`, `room_locked`, `room_full`, `room_not_open`,
 * `room_elsewhere`, `no_media` or `rate_limited`
 */
export declare function moveCall(call: any, address: string | null): Promise<void>;
