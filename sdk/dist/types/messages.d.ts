import type { List } from "./fabric.js";
/** A message. `conversation_id` is the address with which you send and list: that of the other person, or of the room. */
export interface Message {
    id: string;
    conversation_id: string;
    from_address_id: string;
    user_id: string;
    user_name: string;
    text: string;
    /** When it was sent, in Unix milliseconds. */
    ts: number;
}
export interface Conversation {
    /** The address of the other person, or of the room. */
    id: string;
    name: string;
    created_at: number;
    last_message_at: number;
}
type Listener = (message: Message) => void;
/** The messages of a subscriber or guest. */
export declare class Messages {
    private readonly fabric;
    private readonly listeners;
    private readonly seen;
    private socket?;
    private heard;
    private missed;
    private wait;
    /** Sends a message to an address: a person's, or a room's. If no response arrives, it is sent once more, with the same key. */
    send(addressId: string, text: string): Promise<Message>;
    /** Lists the messages of a conversation, newest first. Without an address, those of all conversations. */
    list(addressId?: string, pageSize?: number): List<Message>;
    /** Lists the conversations, newest first. */
    conversations(): List<Conversation>;
    /** Makes the subscriber a member of a room, so that it receives the room's messages. Sending does so, too. */
    join(addressId: string): Promise<void>;
    /**
     * Calls the listener for each new message of every conversation, also your own ones from other devices. After
     * a lost connection, the listener gets what it missed. Returns a function that removes the listener.
     */
    on(listener: Listener): () => void;
    private connect;
    /** Emits the messages that were sent while there was no connection. */
    private catchUp;
    private emit;
}
export {};
