-- +goose Up

-- The logos for dark pages; '' if the one in column logo is for all pages.
ALTER TABLE projects ADD COLUMN dark_logo TEXT NOT NULL DEFAULT '';
ALTER TABLE clients ADD COLUMN dark_logo TEXT NOT NULL DEFAULT '';

-- As in table logos.
CREATE TABLE dark_logos (
    project_id  TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    client_id   TEXT REFERENCES clients (id) ON DELETE CASCADE,  -- NULL for that of the project
    name        TEXT NOT NULL,
    body        TEXT NOT NULL                                    -- a PNG, in base64
);
CREATE UNIQUE INDEX dark_logos_project ON dark_logos (project_id) WHERE client_id IS NULL;
CREATE UNIQUE INDEX dark_logos_client ON dark_logos (client_id) WHERE client_id IS NOT NULL;
CREATE INDEX dark_logos_name ON dark_logos (name);
