-- +goose Up
-- Recordings are found by who called or was called, however many there are.
CREATE INDEX recordings_from ON recordings (project_id, from_address, id) WHERE from_address <> '';
CREATE INDEX recordings_to ON recordings (project_id, to_address, id) WHERE to_address <> '';

-- +goose Down
DROP INDEX recordings_to;
DROP INDEX recordings_from;
