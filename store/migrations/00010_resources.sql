-- +goose Up
-- What can be called, but for subscribers, who have a table of their own.
CREATE TABLE resources (
    id            TEXT PRIMARY KEY,
    project_id    TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    type          TEXT NOT NULL,             -- of its kind: ai_agent …
    display_name  TEXT NOT NULL,
    fields        TEXT NOT NULL,             -- JSON object; its kind's schema says what is in it
    created       BIGINT NOT NULL,
    updated       BIGINT NOT NULL
);
CREATE INDEX resources_project ON resources (project_id, id);
CREATE INDEX resources_type ON resources (project_id, type, id);

ALTER TABLE addresses ADD COLUMN channels TEXT NOT NULL DEFAULT 'audio messaging video'; -- space-separated

-- +goose Down
ALTER TABLE addresses DROP COLUMN channels;
DROP TABLE resources;
