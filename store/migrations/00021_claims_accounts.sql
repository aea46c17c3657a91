-- +goose Up
-- The claims that a login was asked for one by one: a JSON object, '' for none.
ALTER TABLE grants ADD COLUMN claims TEXT NOT NULL DEFAULT '';
-- A browser may hold several logins in a project: 0 is the one in use, the others
-- follow it.
ALTER TABLE login_sessions ADD COLUMN place BIGINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE login_sessions DROP COLUMN place;
ALTER TABLE grants DROP COLUMN claims;
