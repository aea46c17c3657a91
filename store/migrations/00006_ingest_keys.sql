-- +goose Up

-- Keys in the URLs to which switches send recordings.
CREATE TABLE ingest_keys (
    id          TEXT PRIMARY KEY,
    project_id  TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    name        TEXT NOT NULL,
    prefix      TEXT NOT NULL,               -- the first characters, to recognize the key by
    hash        TEXT NOT NULL,               -- SHA-256
    created     BIGINT NOT NULL,
    expires     BIGINT NOT NULL DEFAULT 0,   -- 0 for never
    revoked     BIGINT NOT NULL DEFAULT 0,   -- 0 unless revoked
    last_used   BIGINT NOT NULL DEFAULT 0    -- to the hour
);
CREATE UNIQUE INDEX ingest_keys_hash ON ingest_keys (hash);
CREATE INDEX ingest_keys_project ON ingest_keys (project_id, id);
