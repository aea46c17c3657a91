-- +goose Up
-- A client that is given a new secret may use the one before it for a while, as an API key may.
ALTER TABLE clients ADD COLUMN secret_made BIGINT NOT NULL DEFAULT 0;      -- when it got its present one; 0 if that is its first
ALTER TABLE clients ADD COLUMN old_secret_hash TEXT NOT NULL DEFAULT '';   -- '' for none
ALTER TABLE clients ADD COLUMN old_secret_until BIGINT NOT NULL DEFAULT 0;
ALTER TABLE clients ADD COLUMN old_secret_used BIGINT NOT NULL DEFAULT 0;  -- to the hour

-- +goose Down
ALTER TABLE clients DROP COLUMN old_secret_used;
ALTER TABLE clients DROP COLUMN old_secret_until;
ALTER TABLE clients DROP COLUMN old_secret_hash;
ALTER TABLE clients DROP COLUMN secret_made;
