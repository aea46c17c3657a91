import { SelvageError } from "./errors.js"
import type { FabricClient, List } from "./fabric.js"
import { open } from "./http.js"

export type Format = "wav" | "mp3"

/** A recording as the server returns it. */
export interface RecordingInfo {
  id: string
  project_id: string
  created_at: string
  updated_at: string
  duration_in_seconds: number
  status: string
  stereo: boolean
  byte_size?: number
  /** The URL of the media, signed if the project requires it; null if there is no media. */
  url: string | null
}

/** A recording, of which only the id must be known. */
export class Recording {
  /** @internal */
  constructor(
    private readonly fabric: FabricClient,
    readonly id: string,
    private readonly project?: string,
    /** The data from the server, if the recording was loaded or listed. */
    readonly info?: RecordingInfo,
  ) {}

  /** Returns the URL of the media, for `<audio>`. It works if the project's media is public. */
  url(format: Format = "wav"): string {
    const project = this.info?.project_id ?? this.project
    if (!project) throw new SelvageError("bad_config", "the recording's project is unknown", "Pass projectId to createClient(), or get the recording from recordings.list() or load().")
    return `${this.fabric.base}/api/laml/2010-04-01/Accounts/${project}/Recordings/${encodeURIComponent(this.id)}.${format}`
  }

  /** Loads the recording's data. Requires the scope Voice. */
  async load(): Promise<Recording> {
    const info = await this.fabric.ask<RecordingInfo>(`${path}/${encodeURIComponent(this.id)}`)
    return new Recording(this.fabric, this.id, this.project, info)
  }

  /** Fetches the media with the token, which also works if the media is not public. Requires the scope Voice. */
  async blob(format: Format = "wav"): Promise<Blob> {
    return (await open(this.url(format), { headers: await this.fabric.bearer() })).blob()
  }
}

const path = "/api/relay/rest/recordings"

/** The subscriber's recordings. */
export class Recordings {
  /** @internal */
  constructor(
    private readonly fabric: FabricClient,
    private readonly project?: string,
  ) {}

  /** Returns a recording by its id, without a request. */
  get(id: string): Recording {
    return new Recording(this.fabric, id, this.project)
  }

  /** Lists the recordings, newest first. Requires the scope Voice. */
  list(query: { pageSize?: number } = {}): List<Recording> {
    return this.fabric.list(path, { page_size: query.pageSize }, (info: RecordingInfo) => new Recording(this.fabric, info.id, info.project_id, info))
  }
}
