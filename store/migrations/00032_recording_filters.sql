-- +goose Up

-- Searches of a project's recordings that an operator named on the dashboard.
CREATE TABLE recording_filters (
    id           TEXT PRIMARY KEY,
    operator_id  TEXT NOT NULL REFERENCES operators (id) ON DELETE CASCADE,
    project_id   TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    name         TEXT NOT NULL,
    query        TEXT NOT NULL,              -- of the URL
    created      BIGINT NOT NULL
);
CREATE UNIQUE INDEX recording_filters_name ON recording_filters (operator_id, project_id, name);
CREATE INDEX recording_filters_project ON recording_filters (project_id);
