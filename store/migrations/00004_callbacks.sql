-- +goose Up

-- The hosts that status callbacks of recordings go to: one for each project and origin, while
-- anything waits for it.
CREATE TABLE callback_receivers (
    id          TEXT PRIMARY KEY,            -- digest of the project and the origin
    project_id  TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    url         TEXT NOT NULL,               -- the origin, such as https://example.com
    used        BIGINT NOT NULL,             -- when something was last queued for it
    lease       BIGINT NOT NULL DEFAULT 0,   -- these four as in webhooks
    holder      TEXT NOT NULL DEFAULT '',
    failures    BIGINT NOT NULL DEFAULT 0,
    rests       BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX callback_receivers_used ON callback_receivers (used);

-- Status callbacks to deliver, written in the transaction of the change that they report.
CREATE TABLE callback_deliveries (
    id           TEXT PRIMARY KEY,            -- sorts by creation
    project_id   TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    receiver_id  TEXT NOT NULL,
    sid          TEXT NOT NULL,               -- of the recording
    event        TEXT NOT NULL,               -- its status
    url          TEXT NOT NULL,
    method       TEXT NOT NULL,               -- POST | GET
    fields       TEXT NOT NULL,               -- a form
    state        TEXT NOT NULL,               -- pending | delivered | dead
    created      BIGINT NOT NULL,
    queued       BIGINT NOT NULL,             -- these six as in webhook_deliveries
    due          BIGINT NOT NULL,
    attempts     BIGINT NOT NULL DEFAULT 0,
    status       BIGINT NOT NULL DEFAULT 0,
    error        TEXT NOT NULL DEFAULT '',
    ended        BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX callback_deliveries_due ON callback_deliveries (receiver_id, due) WHERE state = 'pending';
CREATE INDEX callback_deliveries_project ON callback_deliveries (project_id, id);
CREATE INDEX callback_deliveries_state ON callback_deliveries (project_id, state, id);
CREATE INDEX callback_deliveries_ended ON callback_deliveries (state, ended);
CREATE INDEX callback_deliveries_sid ON callback_deliveries (sid);
