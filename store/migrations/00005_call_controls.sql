-- +goose Up

-- What the two sides of a call have muted or held, for a node that takes the call over.
ALTER TABLE calls ADD COLUMN caller_controls BIGINT NOT NULL DEFAULT 0; -- bits, as calls.Controls has them
ALTER TABLE calls ADD COLUMN callee_controls BIGINT NOT NULL DEFAULT 0;
