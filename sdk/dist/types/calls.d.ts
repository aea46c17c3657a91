/** A client of `@signalwire/js`, version 3. */
export interface CallClient {
    dial(params: any): Promise<any>;
    reattach?(params: any): Promise<any>;
    online?(params: any): Promise<any>;
    handlePushNotification?(params: any): Promise<any>;
}
/**
 * Returns a client whose calls outlive their server. It is used as before, and so are its calls: their
 * listeners and their `rootElement` stay. While a call changes to another server, which takes one to six
 * seconds, the app receives `media.reconnecting`; then `room.joined` and `media.connected`, as when the
 * call began. If that fails, it receives `destroy`.
 *
 * A client of a version that cannot reattach, such as 3.27, is returned unchanged.
 */
export declare function keepCalls<C extends CallClient>(client: C): C;
