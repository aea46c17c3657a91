-- +goose Up
-- API keys end by themselves, and have a second secret while they are rotated.
ALTER TABLE api_keys ADD COLUMN expires BIGINT NOT NULL DEFAULT 0;   -- 0 is never
ALTER TABLE api_keys ADD COLUMN rotated BIGINT NOT NULL DEFAULT 0;   -- when it got its present secret; 0 at its creation
ALTER TABLE api_keys ADD COLUMN old_hash TEXT NOT NULL DEFAULT '';   -- of the secret before; '' where none is good
ALTER TABLE api_keys ADD COLUMN old_until BIGINT NOT NULL DEFAULT 0; -- until when that one is good
ALTER TABLE api_keys ADD COLUMN old_used BIGINT NOT NULL DEFAULT 0;  -- when it was used last, to the hour
CREATE INDEX api_keys_old_hash ON api_keys (old_hash) WHERE old_hash <> '';

-- Whose refresh tokens they are, to be listed and ended by. Older families stay
-- without: no longer than a month.
ALTER TABLE families ADD COLUMN subscriber_id TEXT NOT NULL DEFAULT ''; -- '' for guests
ALTER TABLE families ADD COLUMN client_id TEXT NOT NULL DEFAULT '';
ALTER TABLE families ADD COLUMN created BIGINT NOT NULL DEFAULT 0;
ALTER TABLE families ADD COLUMN used BIGINT NOT NULL DEFAULT 0;         -- when it was refreshed last
CREATE INDEX families_subscriber ON families (subscriber_id, id) WHERE subscriber_id <> '';

-- +goose Down
DROP INDEX families_subscriber;
ALTER TABLE families DROP COLUMN used;
ALTER TABLE families DROP COLUMN created;
ALTER TABLE families DROP COLUMN client_id;
ALTER TABLE families DROP COLUMN subscriber_id;
DROP INDEX api_keys_old_hash;
ALTER TABLE api_keys DROP COLUMN old_used;
ALTER TABLE api_keys DROP COLUMN old_until;
ALTER TABLE api_keys DROP COLUMN old_hash;
ALTER TABLE api_keys DROP COLUMN rotated;
ALTER TABLE api_keys DROP COLUMN expires;
