-- +goose Up
-- Mails that are to be sent, or were. None holds a secret: the link of a mail is made
-- when it is sent. As with webhooks a row refers to no other.
CREATE TABLE mails (
    id             TEXT PRIMARY KEY,
    project_id     TEXT NOT NULL,             -- '' for one of the installation
    subscriber_id  TEXT NOT NULL,             -- '' where it is found by the address
    kind           TEXT NOT NULL,
    recipient      TEXT NOT NULL,
    facts          TEXT NOT NULL,             -- a JSON object; '{}' once it is sent
    state          TEXT NOT NULL,             -- pending | sent | dead
    created        BIGINT NOT NULL,
    due            BIGINT NOT NULL,           -- not before; while it is sent, the end of the lease
    attempts       BIGINT NOT NULL DEFAULT 0,
    error          TEXT NOT NULL DEFAULT '',  -- why the last did not work
    ended          BIGINT NOT NULL DEFAULT 0  -- when it was sent or given up
);
CREATE INDEX mails_due ON mails (due) WHERE state = 'pending';
CREATE INDEX mails_state ON mails (state, id);
CREATE INDEX mails_ended ON mails (state, ended);
CREATE INDEX mails_subscriber ON mails (subscriber_id);
CREATE INDEX mails_recipient ON mails (recipient);

-- Links that were sent and may be used, each by the SHA-256 of what is in it. One goes
-- with its use, and with what it is bound to.
CREATE TABLE mail_links (
    hash           TEXT PRIMARY KEY,
    purpose        TEXT NOT NULL,             -- the kind of its mail
    project_id     TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    subscriber_id  TEXT REFERENCES subscribers (id) ON DELETE CASCADE, -- NULL before there is one
    email          TEXT NOT NULL,             -- where it was sent
    inviter        TEXT NOT NULL,             -- who invites, where somebody does
    request        TEXT NOT NULL,             -- the authorization request that goes on after it, '' for none
    created        BIGINT NOT NULL,
    expires        BIGINT NOT NULL
);
CREATE INDEX mail_links_subscriber ON mail_links (subscriber_id);
CREATE INDEX mail_links_project ON mail_links (project_id);
CREATE INDEX mail_links_expires ON mail_links (expires);

-- How a project's mails look, and who may make an account.
ALTER TABLE projects ADD COLUMN color TEXT NOT NULL DEFAULT '';
ALTER TABLE projects ADD COLUMN registration TEXT NOT NULL DEFAULT 'off';

-- +goose Down
ALTER TABLE projects DROP COLUMN registration;
ALTER TABLE projects DROP COLUMN color;
DROP TABLE mail_links;
DROP TABLE mails;
