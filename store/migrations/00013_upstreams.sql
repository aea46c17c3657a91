-- +goose Up

-- Other OpenID providers with which subscribers of a project sign in.
CREATE TABLE upstreams (
    id          TEXT PRIMARY KEY,
    project_id  TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    name        TEXT NOT NULL,               -- on the button of the sign-in page
    issuer      TEXT NOT NULL,
    client_id   TEXT NOT NULL,
    secret      TEXT NOT NULL,               -- sealed; '' for none
    settings    TEXT NOT NULL,               -- JSON
    enabled     BIGINT NOT NULL,
    created     BIGINT NOT NULL,
    updated     BIGINT NOT NULL
);
CREATE UNIQUE INDEX upstreams_name ON upstreams (project_id, name);

-- Accounts there that sign in to a subscriber.
CREATE TABLE upstream_links (
    id            TEXT PRIMARY KEY,
    upstream_id   TEXT NOT NULL REFERENCES upstreams (id) ON DELETE CASCADE,
    project_id    TEXT NOT NULL,             -- of both
    subscriber_id TEXT NOT NULL REFERENCES subscribers (id) ON DELETE CASCADE,
    subject       TEXT NOT NULL,             -- the account's sub
    created       BIGINT NOT NULL
);
CREATE UNIQUE INDEX upstream_links_subject ON upstream_links (upstream_id, subject);
CREATE INDEX upstream_links_subscriber ON upstream_links (subscriber_id, id);
