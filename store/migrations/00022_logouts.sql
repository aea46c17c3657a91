-- +goose Up
-- The clients that are told of logouts (OpenID Connect Back-Channel Logout), and where.
CREATE TABLE logout_receivers (
    id          TEXT PRIMARY KEY REFERENCES clients (id) ON DELETE CASCADE,
    project_id  TEXT NOT NULL,
    url         TEXT NOT NULL,
    lease       BIGINT NOT NULL DEFAULT 0,   -- until when a node alone delivers to it
    holder      TEXT NOT NULL DEFAULT '',    -- which
    failures    BIGINT NOT NULL DEFAULT 0,   -- in a row
    rests       BIGINT NOT NULL DEFAULT 0    -- until when nothing is sent to it
);

-- Logouts, a row for each client that had a grant of the login, written with what ended
-- it. The token is not in here: it is signed when it is sent. As with webhooks it refers
-- to no other row.
CREATE TABLE logout_deliveries (
    client_id      TEXT NOT NULL,
    session_id     TEXT NOT NULL,
    subscriber_id  TEXT NOT NULL,
    state          TEXT NOT NULL,             -- pending | delivered | dead
    created        BIGINT NOT NULL,
    queued         BIGINT NOT NULL,           -- when it began to wait, last
    due            BIGINT NOT NULL,           -- not before
    attempts       BIGINT NOT NULL DEFAULT 0, -- since it was queued
    status         BIGINT NOT NULL DEFAULT 0, -- of the last answer; 0 where there was none
    error          TEXT NOT NULL DEFAULT '',  -- why there was none
    ended          BIGINT NOT NULL DEFAULT 0, -- when it was delivered or given up; 0 while it waits
    PRIMARY KEY (client_id, session_id)
);
CREATE INDEX logout_deliveries_due ON logout_deliveries (client_id, due) WHERE state = 'pending';
CREATE INDEX logout_deliveries_state ON logout_deliveries (client_id, state, session_id);
CREATE INDEX logout_deliveries_ended ON logout_deliveries (state, ended);

-- +goose Down
DROP TABLE logout_deliveries;
DROP TABLE logout_receivers;
