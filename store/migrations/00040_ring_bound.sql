-- +goose Up
-- A code that ties a key to the beginning of the audit trail, so that no ring stands beside
-- a trail that was begun when it was not there. '' for a key of before there were such codes.
ALTER TABLE ring ADD COLUMN bound TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE ring DROP COLUMN bound;
