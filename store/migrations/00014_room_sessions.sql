-- +goose Up

-- What another node needs to go on with a room session whose node was lost.
ALTER TABLE room_sessions ADD COLUMN locked BIGINT NOT NULL DEFAULT 0;
ALTER TABLE room_sessions ADD COLUMN recorded BIGINT NOT NULL DEFAULT 0; -- now, and not paused
