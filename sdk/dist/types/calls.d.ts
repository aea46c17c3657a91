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
