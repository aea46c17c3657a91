-- +goose Up
-- The resources that a grant's access tokens may be for (RFC 8707), separated by
-- spaces; '' for the issuer alone.
ALTER TABLE grants ADD COLUMN resources TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE grants DROP COLUMN resources;
