-- +goose Up
-- Recordings of a direction are listed like all others, however few they are.
CREATE INDEX recordings_direction ON recordings (project_id, direction, id);

-- +goose Down
DROP INDEX recordings_direction;
