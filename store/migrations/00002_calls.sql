-- +goose Up

-- Whether calls are recorded: a call is if the setting of one of its subscribers is on.
ALTER TABLE projects ADD COLUMN record_calls TEXT NOT NULL DEFAULT 'off';        -- off | on
ALTER TABLE subscribers ADD COLUMN record_calls TEXT NOT NULL DEFAULT 'inherit'; -- inherit | off | on

-- Calls between subscribers: one row each, written when it begins, is answered and ends.
CREATE TABLE calls (
    id                TEXT PRIMARY KEY,          -- sorts by the beginning of the call
    project_id        TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    call_id           TEXT NOT NULL,             -- as clients know it; chosen by the caller's
    state             TEXT NOT NULL,             -- created | ringing | answered | ended
    cause             TEXT NOT NULL,             -- why it ended, such as NORMAL_CLEARING
    cause_code        BIGINT NOT NULL,
    node              TEXT NOT NULL,             -- which carries it
    from_name         TEXT NOT NULL,
    from_address      TEXT NOT NULL,
    from_address_id   TEXT NOT NULL,
    from_subscriber   TEXT NOT NULL,
    to_name           TEXT NOT NULL,
    to_address        TEXT NOT NULL,
    to_address_id     TEXT NOT NULL,
    to_subscriber     TEXT NOT NULL,
    dialed            TEXT NOT NULL,
    video             BIGINT NOT NULL,
    recording_sid     TEXT NOT NULL,
    received          BIGINT NOT NULL,           -- packets from the caller
    lost              BIGINT NOT NULL,           -- of those
    jitter            BIGINT NOT NULL,           -- microseconds
    round_trip        BIGINT NOT NULL,           -- microseconds
    transport         TEXT NOT NULL,             -- udp | tcp
    created           BIGINT NOT NULL,
    answered          BIGINT NOT NULL DEFAULT 0,
    ended             BIGINT NOT NULL DEFAULT 0,
    asked             BIGINT NOT NULL DEFAULT 0  -- bits: 1 end it, 2 follow its recordings
);
CREATE UNIQUE INDEX calls_call ON calls (project_id, call_id);
CREATE INDEX calls_project ON calls (project_id, id);
CREATE INDEX calls_running ON calls (node, id) WHERE ended = 0;
CREATE INDEX calls_live ON calls (project_id, id) WHERE ended = 0;
CREATE INDEX calls_ended ON calls (ended) WHERE ended > 0;
CREATE INDEX calls_asked ON calls (node) WHERE asked <> 0 AND ended = 0;
CREATE INDEX calls_from ON calls (from_subscriber, id) WHERE from_subscriber <> '';
CREATE INDEX calls_to ON calls (to_subscriber, id) WHERE to_subscriber <> '';
