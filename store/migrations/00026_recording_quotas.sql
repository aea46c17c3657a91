-- +goose Up

-- Most bytes that the recordings of a project may use; 0 means no limit.
ALTER TABLE projects ADD COLUMN recording_quota BIGINT NOT NULL DEFAULT 0;
-- Most uploads of recordings per minute; 0 means no limit.
ALTER TABLE projects ADD COLUMN upload_rate BIGINT NOT NULL DEFAULT 0;
