import { SelvageError } from "./errors.js"
import type { FabricClient, List } from "./fabric.js"
import { open } from "./http.js"

export type Format = "wav" | "mp3"

/** What the server tells of a recording. */
export interface RecordingInfo {
  id: string
  project_id: string
  created_at: string
  updated_at: string
  duration_in_seconds: number
  status: string
  stereo: boolean
  byte_size?: number
  /** Where its media is: signed where the project wants that; null where there is none. */
  url: string | null
}

/** A recording, of which nothing but its id need be known. */
export class Recording {
  /** @internal */
  constructor(
    private readonly fabric: FabricClient,
    readonly id: string,
    private readonly project?: string,
    /** What the server told, where it came from a list. */
    readonly info?: RecordingInfo,
  ) {}

  /** Gives where its media is, for `<audio>`. It holds where the project's media is public. */
  url(format: Format = "wav"): string {
    const project = this.info?.project_id ?? this.project
    if (!project) throw new SelvageError("bad_config", "the recording's project is not known", "Give createClient() the projectId, or take the recording from recordings.list() or load().")
    return `${this.fabric.base}/api/laml/2010-04-01/Accounts/${project}/Recordings/${encodeURIComponent(this.id)}.${format}`
  }

  /** Asks the server about it. It needs the scope Voice. */
  async load(): Promise<Recording> {
    const info = await this.fabric.ask<RecordingInfo>(`${path}/${encodeURIComponent(this.id)}`)
    return new Recording(this.fabric, this.id, this.project, info)
  }

  /** Fetches its media with the token, where it is not public. It needs the scope Voice. */
  async blob(format: Format = "wav"): Promise<Blob> {
    return (await open(this.url(format), { headers: await this.fabric.bearer() })).blob()
  }
}

const path = "/api/relay/rest/recordings"

/** The recordings that are the subscriber's. */
export class Recordings {
  /** @internal */
  constructor(
    private readonly fabric: FabricClient,
    private readonly project?: string,
  ) {}

  /** Gives a recording by its id. Nothing is asked. */
  get(id: string): Recording {
    return new Recording(this.fabric, id, this.project)
  }

  /** Lists them, the newest first. It needs the scope Voice. */
  list(query: { pageSize?: number } = {}): List<Recording> {
    return this.fabric.list(path, { page_size: query.pageSize }, (info: RecordingInfo) => new Recording(this.fabric, info.id, info.project_id, info))
  }
}
