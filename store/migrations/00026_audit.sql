-- +goose Up
-- What was done, by whom, and what was refused: see package audit. Events are added in
-- lanes, each a chain of hashes; nothing here is unique, since it is the chain that shows
-- what is wrong.
CREATE TABLE audit (
    lane         BIGINT NOT NULL,
    seq          BIGINT NOT NULL,            -- the place in the lane, from 1
    id           TEXT NOT NULL,
    at           BIGINT NOT NULL,
    project_id   TEXT NOT NULL,              -- '' for the installation; stays when the project goes
    action       TEXT NOT NULL,
    outcome      TEXT NOT NULL,
    actor_kind   TEXT NOT NULL,
    actor_id     TEXT NOT NULL,
    target_kind  TEXT NOT NULL,
    target_id    TEXT NOT NULL,
    address      TEXT NOT NULL,
    request_id   TEXT NOT NULL,
    detail       TEXT NOT NULL,              -- JSON object, or ''
    hash         TEXT NOT NULL               -- HMAC over the event and the hash before it
);
CREATE INDEX audit_lane ON audit (lane, seq);
CREATE INDEX audit_id ON audit (id);
CREATE INDEX audit_project ON audit (project_id, id);

-- The end of each lane, and what was pruned at its beginning. SQLite uses the first lane
-- alone; on PostgreSQL those who write at once take turns in them.
CREATE TABLE audit_heads (
    lane         BIGINT PRIMARY KEY,
    seq          BIGINT NOT NULL DEFAULT 0,
    hash         TEXT NOT NULL DEFAULT '',
    mac          TEXT NOT NULL DEFAULT '',
    pruned_seq   BIGINT NOT NULL DEFAULT 0,
    pruned_hash  TEXT NOT NULL DEFAULT '',
    pruned_mac   TEXT NOT NULL DEFAULT ''
);
INSERT INTO audit_heads (lane) VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9), (10), (11), (12), (13), (14), (15);

-- +goose Down
DROP TABLE audit_heads;
DROP TABLE audit;
