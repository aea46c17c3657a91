-- +goose Up

-- Why a recording must not be deleted; '' if it may be.
ALTER TABLE recordings ADD COLUMN hold TEXT NOT NULL DEFAULT '';
CREATE INDEX recordings_held ON recordings (project_id, id) WHERE hold <> '';

-- The tags of a recording, separated by spaces. recording_tags has a row for each of them.
ALTER TABLE recordings ADD COLUMN tags TEXT NOT NULL DEFAULT '';
CREATE TABLE recording_tags (
    project       TEXT NOT NULL,             -- of the recording
    tag           TEXT NOT NULL,
    recording_id  TEXT NOT NULL REFERENCES recordings (id) ON DELETE CASCADE,
    PRIMARY KEY (project, tag, recording_id)
);
CREATE INDEX recording_tags_recording ON recording_tags (recording_id);

-- How long recordings are kept. The most specific rule applies: one with a tag before one without.
CREATE TABLE retention_rules (
    id             TEXT PRIMARY KEY,
    project_id     TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    tag            TEXT NOT NULL,            -- '' means recordings with any tags or none
    subscriber_id  TEXT NOT NULL,            -- '' means recordings of anyone
    days           BIGINT NOT NULL,          -- since they were stored; 0 means forever
    created        BIGINT NOT NULL
);
CREATE UNIQUE INDEX retention_rules_scope ON retention_rules (project_id, tag, subscriber_id);

-- What deleted recordings amounted to whose stubs are gone, by the day on which they were stored.
CREATE TABLE recording_usage (
    project_id  TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    day         BIGINT NOT NULL,             -- days since 1970, in UTC
    recordings  BIGINT NOT NULL,
    seconds     BIGINT NOT NULL,
    bytes       BIGINT NOT NULL,
    price       BIGINT NOT NULL,             -- in millionths of a dollar
    PRIMARY KEY (project_id, day)
);

-- Who fetched the media of a recording. Requests of one client within an hour are one row.
CREATE TABLE recording_accesses (
    id            TEXT PRIMARY KEY,          -- sorts by the first request
    recording_id  TEXT NOT NULL REFERENCES recordings (id) ON DELETE CASCADE,
    hour          BIGINT NOT NULL,           -- hours since 1970, in UTC
    actor         TEXT NOT NULL,             -- such as 'key:ID'; 'public' if nobody proved who they are
    address       TEXT NOT NULL,             -- of the client
    format        TEXT NOT NULL,             -- wav | mp3 | original
    requests      BIGINT NOT NULL,
    bytes         BIGINT NOT NULL,
    first         BIGINT NOT NULL,
    last          BIGINT NOT NULL
);
CREATE UNIQUE INDEX recording_accesses_client ON recording_accesses (recording_id, hour, actor, address, format);
CREATE INDEX recording_accesses_recording ON recording_accesses (recording_id, id);
