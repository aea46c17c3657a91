-- +goose Up
-- Keys that stand in pages: each gives guest tokens to one address.
CREATE TABLE embed_keys (
    id          TEXT PRIMARY KEY,
    project_id  TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    address_id  TEXT NOT NULL REFERENCES addresses (id) ON DELETE CASCADE,
    name        TEXT NOT NULL,
    prefix      TEXT NOT NULL,               -- its first characters, to be told apart
    hash        TEXT NOT NULL,               -- SHA-256
    created     BIGINT NOT NULL,
    revoked     BIGINT NOT NULL DEFAULT 0    -- 0 while it is good
);
CREATE UNIQUE INDEX embed_keys_hash ON embed_keys (hash);
CREATE INDEX embed_keys_project ON embed_keys (project_id, id);
CREATE INDEX embed_keys_address ON embed_keys (address_id);

-- Where subscribers are told of calls when no app of theirs is open.
CREATE TABLE devices (
    id             TEXT PRIMARY KEY,
    project_id     TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    subscriber_id  TEXT NOT NULL REFERENCES subscribers (id) ON DELETE CASCADE,
    type           TEXT NOT NULL,            -- iOS | Android | Desktop
    token          TEXT NOT NULL,            -- of the push service
    name           TEXT NOT NULL,
    push_key       TEXT NOT NULL,            -- what pushes to it are sealed with
    created        BIGINT NOT NULL
);
CREATE INDEX devices_subscriber ON devices (subscriber_id, id); -- tokens are too long for one in PostgreSQL
CREATE INDEX devices_project ON devices (project_id);

-- +goose Down
DROP TABLE devices;
DROP TABLE embed_keys;
