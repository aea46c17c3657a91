-- +goose Up

-- The names of deleted subscribers, for readers of the audit trail. An erasure deletes them.
CREATE TABLE deleted_names (
    id          TEXT PRIMARY KEY,            -- of the subscriber
    project_id  TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    name        TEXT NOT NULL,               -- email, name or reference
    deleted     BIGINT NOT NULL
);
CREATE INDEX deleted_names_project ON deleted_names (project_id, LOWER(name));
CREATE INDEX deleted_names_deleted ON deleted_names (deleted);
