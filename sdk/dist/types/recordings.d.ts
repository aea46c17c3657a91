import type { List } from "./fabric.js";
export type Format = "wav" | "mp3";
/** A recording as the server returns it. */
export interface RecordingInfo {
    id: string;
    project_id: string;
    created_at: string;
    updated_at: string;
    duration_in_seconds: number;
    status: string;
    stereo: boolean;
    byte_size?: number;
    /** The URL of the media, signed if the project requires it; null if there is no media. */
    url: string | null;
}
/** A recording, of which only the id must be known. */
export declare class Recording {
    private readonly fabric;
    readonly id: string;
    private readonly project?;
    /** The data from the server, if the recording was loaded or listed. */
    readonly info?: RecordingInfo | undefined;
    /** Returns the URL of the media, for `<audio>`. It works if the project's media is public. */
    url(format?: Format): string;
    /** Loads the recording's data. Requires the scope Voice. */
    load(): Promise<Recording>;
    /** Fetches the media with the token, which also works if the media is not public. Requires the scope Voice. */
    blob(format?: Format): Promise<Blob>;
}
/** The subscriber's recordings. */
export declare class Recordings {
    private readonly fabric;
    private readonly project?;
    /** Returns a recording by its id, without a request. */
    get(id: string): Recording;
    /** Lists the recordings, newest first. Requires the scope Voice. */
    list(query?: {
        pageSize?: number;
    }): List<Recording>;
}
