-- +goose Up
-- Pictures that pages and mails show of projects and of clients. Their names are made of
-- their content, and the same picture may be there more than once.
CREATE TABLE logos (
    project_id  TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    client_id   TEXT REFERENCES clients (id) ON DELETE CASCADE,  -- NULL for that of the project
    name        TEXT NOT NULL,
    body        TEXT NOT NULL                                    -- a PNG, in base64
);
CREATE UNIQUE INDEX logos_project ON logos (project_id) WHERE client_id IS NULL;
CREATE UNIQUE INDEX logos_client ON logos (client_id) WHERE client_id IS NOT NULL;
CREATE INDEX logos_name ON logos (name);
ALTER TABLE projects ADD COLUMN logo TEXT NOT NULL DEFAULT '';        -- its name; '' for none
ALTER TABLE clients ADD COLUMN logo TEXT NOT NULL DEFAULT '';
ALTER TABLE projects ADD COLUMN terms_uri TEXT NOT NULL DEFAULT '';   -- shown where people sign in; '' for none
ALTER TABLE projects ADD COLUMN policy_uri TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE projects DROP COLUMN policy_uri;
ALTER TABLE projects DROP COLUMN terms_uri;
ALTER TABLE clients DROP COLUMN logo;
ALTER TABLE projects DROP COLUMN logo;
DROP TABLE logos;
