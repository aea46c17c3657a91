-- +goose Up

-- Finds the recordings of a project with the same file, so that it is stored once.
CREATE INDEX recordings_digest ON recordings (project_id, sha256, id) WHERE deleted = 0 AND sha256 <> '';
