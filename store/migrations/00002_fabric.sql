-- +goose Up
CREATE TABLE projects (
    id           TEXT PRIMARY KEY,
    name         TEXT NOT NULL,
    record_rate  BIGINT NOT NULL,            -- micro-units a minute
    created      BIGINT NOT NULL,
    updated      BIGINT NOT NULL
);

CREATE TABLE api_keys (
    id          TEXT PRIMARY KEY,
    project_id  TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    name        TEXT NOT NULL,
    prefix      TEXT NOT NULL,               -- its first characters, to be told apart
    hash        TEXT NOT NULL,               -- SHA-256 of the key; the key itself is nowhere
    scopes      TEXT NOT NULL,               -- space-separated
    created     BIGINT NOT NULL,
    revoked     BIGINT NOT NULL DEFAULT 0,   -- 0 while it is good
    last_used   BIGINT NOT NULL DEFAULT 0    -- to the hour
);
CREATE UNIQUE INDEX api_keys_hash ON api_keys (hash);
CREATE INDEX api_keys_project ON api_keys (project_id, id);

CREATE TABLE subscribers (
    id             TEXT PRIMARY KEY,
    project_id     TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    email          TEXT,                     -- NFC, lower case; NULL where there is none
    reference      TEXT,                     -- NULL where there is none
    password_hash  TEXT NOT NULL DEFAULT '', -- '' where no password was set
    first_name     TEXT NOT NULL DEFAULT '',
    last_name      TEXT NOT NULL DEFAULT '',
    display_name   TEXT NOT NULL DEFAULT '',
    job_title      TEXT NOT NULL DEFAULT '',
    time_zone      TEXT NOT NULL DEFAULT '',
    country        TEXT NOT NULL DEFAULT '',
    company_name   TEXT NOT NULL DEFAULT '',
    region         TEXT NOT NULL DEFAULT '',
    disabled       BIGINT NOT NULL DEFAULT 0,
    created        BIGINT NOT NULL,
    updated        BIGINT NOT NULL
);
CREATE UNIQUE INDEX subscribers_email ON subscribers (project_id, email);
CREATE UNIQUE INDEX subscribers_reference ON subscribers (project_id, reference);
CREATE INDEX subscribers_project ON subscribers (project_id, id);

CREATE TABLE addresses (
    id            TEXT PRIMARY KEY,
    project_id    TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    resource_id   TEXT NOT NULL,             -- of a subscriber
    type          TEXT NOT NULL,             -- app | room | call | subscriber
    context       TEXT NOT NULL,             -- private | public
    name          TEXT NOT NULL,
    display_name  TEXT NOT NULL,
    created       BIGINT NOT NULL
);
CREATE UNIQUE INDEX addresses_name ON addresses (project_id, context, name);
CREATE INDEX addresses_sorted ON addresses (project_id, name, id);
CREATE INDEX addresses_project ON addresses (project_id, id);
CREATE INDEX addresses_resource ON addresses (resource_id, id);

-- Refresh tokens that have been used: one row a family, written by its first use.
CREATE TABLE families (
    id          TEXT PRIMARY KEY,
    project_id  TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    generation  BIGINT NOT NULL,             -- of the one token that may be used next
    revoked     BIGINT NOT NULL DEFAULT 0,
    expires     BIGINT NOT NULL              -- when the last of its tokens has expired
);
CREATE INDEX families_project ON families (project_id);
CREATE INDEX families_expires ON families (expires);

-- +goose Down
DROP TABLE families;
DROP TABLE addresses;
DROP TABLE subscribers;
DROP TABLE api_keys;
DROP TABLE projects;
