-- +goose Up
-- The assertions of clients (RFC 7523) that were used: each is good once, for whoever
-- inserts its digest.
CREATE TABLE used_assertions (
    hash    TEXT PRIMARY KEY,
    expires BIGINT NOT NULL               -- when the assertion is good for nobody any more
);
CREATE INDEX used_assertions_expires ON used_assertions (expires);

-- +goose Down
DROP TABLE used_assertions;
