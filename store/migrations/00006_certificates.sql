-- +goose Up
-- What nodes share to have certificates by ACME: the account, each host's
-- certificate with its key, answers to challenges, and who asks for what.
CREATE TABLE certificates (
    name    TEXT PRIMARY KEY,
    sealed  TEXT NOT NULL,   -- under the master key
    updated BIGINT NOT NULL  -- of a claim: until when it holds
);

-- +goose Down
DROP TABLE certificates;
