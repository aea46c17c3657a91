-- +goose Up

-- What another node needs to go on with a call whose node was lost.
ALTER TABLE calls ADD COLUMN guest TEXT NOT NULL DEFAULT '';      -- id of the caller's token if it is a guest
ALTER TABLE calls ADD COLUMN callee_leg TEXT NOT NULL DEFAULT ''; -- the call's id as the client that answered knows it
