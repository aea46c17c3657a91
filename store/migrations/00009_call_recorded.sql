-- +goose Up

-- Whether the call is being recorded now, for a node that takes it over.
ALTER TABLE calls ADD COLUMN recorded BIGINT NOT NULL DEFAULT 0;
