-- +goose Up

-- When a call was moved into its room session; 0 if the caller dialed the room.
ALTER TABLE calls ADD COLUMN joined BIGINT NOT NULL DEFAULT 0;
