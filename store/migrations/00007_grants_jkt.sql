-- +goose Up

-- The thumbprint of the key that the tokens of a grant are bound to (RFC 9449); '' for none.
ALTER TABLE grants ADD COLUMN jkt TEXT NOT NULL DEFAULT '';
