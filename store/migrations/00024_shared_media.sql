-- +goose Up

-- Recordings of a project with the same file have the same media_key.
DROP INDEX recordings_media;
CREATE INDEX recordings_media ON recordings (media_key, id) WHERE media_key IS NOT NULL;
