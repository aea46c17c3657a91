-- +goose Up
-- What only some clients have: a JSON object under the names of RFC 7591.
ALTER TABLE clients ADD COLUMN metadata TEXT NOT NULL DEFAULT '{}';

-- +goose Down
ALTER TABLE clients DROP COLUMN metadata;
