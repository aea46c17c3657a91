-- +goose Up

-- Clients that register themselves (RFC 7591). A request without a token names no project, so only
-- one project can be open.
ALTER TABLE projects ADD COLUMN client_registration TEXT NOT NULL DEFAULT 'off'; -- off | token | open
CREATE UNIQUE INDEX projects_open ON projects (client_registration) WHERE client_registration = 'open';
CREATE INDEX projects_registering ON projects (client_registration) WHERE client_registration <> 'off';

ALTER TABLE clients ADD COLUMN registered_by TEXT NOT NULL DEFAULT '';           -- open, the id of a token, or ''
ALTER TABLE clients ADD COLUMN registration_hash TEXT NOT NULL DEFAULT '';       -- SHA-256 of its registration access token
CREATE INDEX clients_registered ON clients (project_id) WHERE registered_by <> '';

-- Initial access tokens, with which clients register themselves.
CREATE TABLE registration_tokens (
    id          TEXT PRIMARY KEY,
    project_id  TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    name        TEXT NOT NULL,
    prefix      TEXT NOT NULL,               -- the first characters, to recognize the token by
    hash        TEXT NOT NULL,               -- SHA-256
    created     BIGINT NOT NULL,
    expires     BIGINT NOT NULL DEFAULT 0,   -- 0 for never
    revoked     BIGINT NOT NULL DEFAULT 0,   -- 0 unless revoked
    max_uses    BIGINT NOT NULL DEFAULT 0,   -- clients that it may register; 0 for any number
    uses        BIGINT NOT NULL DEFAULT 0    -- clients that it has registered
);
CREATE UNIQUE INDEX registration_tokens_hash ON registration_tokens (hash);
CREATE INDEX registration_tokens_project ON registration_tokens (project_id, id);
