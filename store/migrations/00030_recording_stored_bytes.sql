-- +goose Up

-- Contains everything that the sum of a project's stored bytes needs, so that it reads no rows.
CREATE INDEX recordings_stored ON recordings (project_id, media_key, id, bytes) WHERE deleted = 0;
