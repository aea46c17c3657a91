-- +goose Up
CREATE TABLE recordings (
    id              TEXT PRIMARY KEY,          -- names the media, too
    sid             TEXT NOT NULL,
    project_id      TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    identity        TEXT,                      -- what a repeated upload has too; NULL for none
    call_sid        TEXT,
    conference_sid  TEXT,
    from_address    TEXT NOT NULL,
    to_address      TEXT NOT NULL,
    direction       TEXT NOT NULL,
    source          TEXT NOT NULL,
    track           TEXT NOT NULL,
    start_time      BIGINT NOT NULL,           -- 0 where unknown
    status          TEXT NOT NULL,             -- completed | absent
    error_code      TEXT NOT NULL,
    codec           TEXT NOT NULL,
    sample_rate     BIGINT NOT NULL,
    channels        BIGINT NOT NULL,
    bits            BIGINT NOT NULL,
    frames          BIGINT NOT NULL,
    bytes           BIGINT NOT NULL,
    sha256          TEXT NOT NULL,
    repairs         TEXT NOT NULL,             -- a line each
    price           BIGINT NOT NULL,           -- micro-units
    created         BIGINT NOT NULL,
    updated         BIGINT NOT NULL,
    deleted         BIGINT NOT NULL DEFAULT 0  -- since when it is a stub without media
);
CREATE UNIQUE INDEX recordings_sid ON recordings (sid);
CREATE UNIQUE INDEX recordings_identity ON recordings (project_id, identity) WHERE deleted = 0;
CREATE INDEX recordings_project ON recordings (project_id, id);
CREATE INDEX recordings_call ON recordings (project_id, call_sid, id) WHERE call_sid IS NOT NULL;
CREATE INDEX recordings_conference ON recordings (project_id, conference_sid, id) WHERE conference_sid IS NOT NULL;
CREATE INDEX recordings_deleted ON recordings (deleted) WHERE deleted <> 0;

-- Whose address a call went from or to: one recording may be tied to two.
CREATE TABLE recording_subscribers (
    subscriber_id  TEXT NOT NULL,
    recording_id   TEXT NOT NULL REFERENCES recordings (id) ON DELETE CASCADE,
    PRIMARY KEY (subscriber_id, recording_id)
);
CREATE INDEX recording_subscribers_recording ON recording_subscribers (recording_id);

-- +goose Down
DROP TABLE recording_subscribers;
DROP TABLE recordings;
