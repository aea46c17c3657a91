import type { List } from "./fabric.js";
export type Format = "wav" | "mp3";
/** What the server tells of a recording. */
export interface RecordingInfo {
    id: string;
    project_id: string;
    created_at: string;
    updated_at: string;
    duration_in_seconds: number;
    status: string;
    stereo: boolean;
    byte_size?: number;
    /** Where its media is: signed where the project wants that; null where there is none. */
    url: string | null;
}
/** A recording, of which nothing but its id need be known. */
export declare class Recording {
    private readonly fabric;
    readonly id: string;
    private readonly project?;
    /** What the server told, where it came from a list. */
    readonly info?: RecordingInfo | undefined;
    /** Gives where its media is, for `<audio>`. It holds where the project's media is public. */
    url(format?: Format): string;
    /** Asks the server about it. It needs the scope Voice. */
    load(): Promise<Recording>;
    /** Fetches its media with the token, where it is not public. It needs the scope Voice. */
    blob(format?: Format): Promise<Blob>;
}
/** The recordings that are the subscriber's. */
export declare class Recordings {
    private readonly fabric;
    private readonly project?;
    /** Gives a recording by its id. Nothing is asked. */
    get(id: string): Recording;
    /** Lists them, the newest first. It needs the scope Voice. */
    list(query?: {
        pageSize?: number;
    }): List<Recording>;
}
