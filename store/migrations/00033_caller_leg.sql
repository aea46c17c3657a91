-- +goose Up

-- The caller's leg, once its caller has transferred the call; '' while it is the one in call_id.
ALTER TABLE calls ADD COLUMN caller_leg TEXT NOT NULL DEFAULT '';
