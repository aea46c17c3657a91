-- +goose Up
-- What of a resource was deployed: its members as they were then.
CREATE TABLE resource_versions (
    id                TEXT PRIMARY KEY,
    project_id        TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    resource_id       TEXT NOT NULL REFERENCES resources (id) ON DELETE CASCADE,
    number            BIGINT NOT NULL,       -- 1, 2, 3 of the resource
    document_version  BIGINT NOT NULL,
    fields            TEXT NOT NULL,         -- JSON object
    created           BIGINT NOT NULL
);
CREATE UNIQUE INDEX resource_versions_number ON resource_versions (resource_id, number);
CREATE INDEX resource_versions_resource ON resource_versions (resource_id, id);

ALTER TABLE resources ADD COLUMN handler_id TEXT NOT NULL DEFAULT ''; -- the resource that takes the calls of this one
ALTER TABLE resources ADD COLUMN secrets TEXT NOT NULL DEFAULT ''; -- members that are never shown, sealed
CREATE INDEX resources_handler ON resources (handler_id) WHERE handler_id <> '';

-- Which resource takes the calls or messages of a phone number.
CREATE TABLE phone_routes (
    id           TEXT NOT NULL,              -- of the number, where telephony keeps it
    project_id   TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    handler      TEXT NOT NULL,              -- calling | messaging
    resource_id  TEXT NOT NULL,
    assigned     BIGINT NOT NULL,
    PRIMARY KEY (project_id, id, handler)
);
CREATE INDEX phone_routes_resource ON phone_routes (resource_id);

-- Where SIP systems reach a resource: user@name.domain.
CREATE TABLE sip_addresses (
    id           TEXT PRIMARY KEY,
    project_id   TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    resource_id  TEXT NOT NULL,              -- what takes the calls
    name         TEXT NOT NULL,
    "user"       TEXT NOT NULL,              -- * is any
    fields       TEXT NOT NULL,              -- JSON object: the other members
    secrets      TEXT NOT NULL DEFAULT '',   -- its password, sealed; '' where there is none
    created      BIGINT NOT NULL,
    updated      BIGINT NOT NULL
);
CREATE UNIQUE INDEX sip_addresses_name ON sip_addresses (name, "user");
CREATE INDEX sip_addresses_project ON sip_addresses (project_id, id);
CREATE INDEX sip_addresses_resource ON sip_addresses (resource_id);

-- By what a subscriber's phones register.
CREATE TABLE sip_credentials (
    id             TEXT PRIMARY KEY,
    project_id     TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    subscriber_id  TEXT NOT NULL REFERENCES subscribers (id) ON DELETE CASCADE,
    username       TEXT NOT NULL,
    fields         TEXT NOT NULL,            -- JSON object: the other members
    secrets        TEXT NOT NULL,            -- its password, sealed
    created        BIGINT NOT NULL,
    updated        BIGINT NOT NULL
);
CREATE UNIQUE INDEX sip_credentials_username ON sip_credentials (project_id, username);
CREATE INDEX sip_credentials_subscriber ON sip_credentials (subscriber_id, id);

-- +goose Down
DROP TABLE sip_credentials;
DROP TABLE sip_addresses;
DROP TABLE phone_routes;
DROP TABLE resource_versions;
DROP INDEX resources_handler;
ALTER TABLE resources DROP COLUMN secrets;
ALTER TABLE resources DROP COLUMN handler_id;
