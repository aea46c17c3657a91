-- +goose Up

-- When a transfer made a call leave through a gateway; 0 if it has left through one from its beginning.
ALTER TABLE calls ADD COLUMN outbound_from BIGINT NOT NULL DEFAULT 0;
