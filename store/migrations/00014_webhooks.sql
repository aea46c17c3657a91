-- +goose Up
-- Where a project wants to be told what happens to its subscribers and resources.
CREATE TABLE webhooks (
    id          TEXT PRIMARY KEY,
    project_id  TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    url         TEXT NOT NULL,
    name        TEXT NOT NULL,
    events      TEXT NOT NULL,               -- each between spaces: ' subscriber.created resource.deleted '; ' * ' is all
    enabled     BIGINT NOT NULL,
    created     BIGINT NOT NULL,
    updated     BIGINT NOT NULL,
    lease       BIGINT NOT NULL DEFAULT 0,   -- until when a node alone delivers to it
    holder      TEXT NOT NULL DEFAULT '',    -- which
    failures    BIGINT NOT NULL DEFAULT 0,   -- in a row
    rests       BIGINT NOT NULL DEFAULT 0    -- until when nothing is sent to it
);
CREATE INDEX webhooks_project ON webhooks (project_id, id);

-- What is told, a row for each webhook that wants it, written with the change that it
-- tells of. It refers to no other row, so that a webhook which is deleted at that
-- moment is in nobody's way.
CREATE TABLE webhook_deliveries (
    webhook_id  TEXT NOT NULL,
    id          TEXT NOT NULL,               -- of the event
    event       TEXT NOT NULL,
    subject     TEXT NOT NULL,               -- the subscriber or resource
    body        TEXT NOT NULL,               -- JSON, to the byte
    state       TEXT NOT NULL,               -- pending | delivered | dead
    created     BIGINT NOT NULL,
    queued      BIGINT NOT NULL,             -- when it began to wait, last
    due         BIGINT NOT NULL,             -- not before
    attempts    BIGINT NOT NULL DEFAULT 0,   -- since it was queued
    status      BIGINT NOT NULL DEFAULT 0,   -- of the last answer; 0 where there was none
    error       TEXT NOT NULL DEFAULT '',    -- why there was none
    ended       BIGINT NOT NULL DEFAULT 0,   -- when it was delivered or given up; 0 while it waits
    PRIMARY KEY (webhook_id, id)
);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (webhook_id, due) WHERE state = 'pending';
CREATE INDEX webhook_deliveries_state ON webhook_deliveries (webhook_id, state, id);
CREATE INDEX webhook_deliveries_ended ON webhook_deliveries (state, ended);

-- What bodies of a project are signed with. The one that began last signs.
CREATE TABLE signing_keys (
    id          TEXT PRIMARY KEY,
    project_id  TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    sealed      TEXT NOT NULL,
    created     BIGINT NOT NULL,
    starts      BIGINT NOT NULL              -- when it signs; 0 for a project's first
);
CREATE UNIQUE INDEX signing_keys_starts ON signing_keys (project_id, starts);

-- Whether webhooks were told last that a subscriber is online. The session store
-- knows whether it is; a version that nobody else has raised meanwhile decides who
-- tells of a difference.
CREATE TABLE presences (
    subscriber_id  TEXT PRIMARY KEY REFERENCES subscribers (id) ON DELETE CASCADE,
    project_id     TEXT NOT NULL,
    online         BIGINT NOT NULL,
    version        BIGINT NOT NULL,
    due            BIGINT NOT NULL           -- when to look whether it is still so
);
CREATE INDEX presences_due ON presences (online, due);
INSERT INTO sequences (name, value) VALUES ('presences', 0);

-- +goose Down
DELETE FROM sequences WHERE name = 'presences';
DROP TABLE presences;
DROP TABLE signing_keys;
DROP TABLE webhook_deliveries;
DROP TABLE webhooks;
