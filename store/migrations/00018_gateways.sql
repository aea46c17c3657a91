-- +goose Up

-- Whether members of a project may call phone numbers, and which.
ALTER TABLE projects ADD COLUMN outbound_calls TEXT NOT NULL DEFAULT 'off';  -- off | on
ALTER TABLE projects ADD COLUMN outbound_prefixes TEXT NOT NULL DEFAULT ''; -- such as '+49 +43'; '' means none

ALTER TABLE calls ADD COLUMN gateway TEXT NOT NULL DEFAULT ''; -- the SIP gateway through which it leaves; '' for others
ALTER TABLE calls ADD COLUMN reason TEXT NOT NULL DEFAULT '';  -- why a rule refused it
CREATE INDEX calls_gateway ON calls (project_id, id) WHERE gateway <> '';

-- The gateways of all projects.
CREATE INDEX resources_gateways ON resources (id) WHERE type = 'sip_gateway';

-- Phone numbers at which gateways deliver calls. Routes with the same id lead to the resources that take them.
CREATE TABLE phone_numbers (
    id          TEXT PRIMARY KEY,
    project_id  TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    number      TEXT NOT NULL,             -- in E.164 format, such as '+4930123456'
    created     BIGINT NOT NULL
);
CREATE UNIQUE INDEX phone_numbers_number ON phone_numbers (number);
CREATE INDEX phone_numbers_project ON phone_numbers (project_id, id);
