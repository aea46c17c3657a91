-- +goose Up

-- The sessions of conference rooms. Their members are calls.
CREATE TABLE room_sessions (
    id         TEXT PRIMARY KEY,          -- sorts by the beginning of the session
    project_id TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    room_id    TEXT NOT NULL,             -- the conference room, which may have been deleted
    address    TEXT NOT NULL,
    name       TEXT NOT NULL,
    node       TEXT NOT NULL,             -- which carries it
    most       BIGINT NOT NULL DEFAULT 0, -- the largest number of members at the same time
    started    BIGINT NOT NULL,
    ended      BIGINT NOT NULL DEFAULT 0,
    asked      BIGINT NOT NULL DEFAULT 0  -- 1: end it
);
CREATE UNIQUE INDEX room_sessions_open ON room_sessions (project_id, room_id) WHERE ended = 0;
CREATE INDEX room_sessions_project ON room_sessions (project_id, id);
CREATE INDEX room_sessions_running ON room_sessions (node) WHERE ended = 0;
CREATE INDEX room_sessions_ended ON room_sessions (ended) WHERE ended > 0;

ALTER TABLE calls ADD COLUMN room_session TEXT NOT NULL DEFAULT '';
CREATE INDEX calls_room ON calls (room_session, id) WHERE room_session <> '';
