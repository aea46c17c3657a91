-- +goose Up
-- How often all that opens an account was replaced, by a new password or a link that
-- sets one: what devices were given before is good no more.
ALTER TABLE subscribers ADD COLUMN epoch BIGINT NOT NULL DEFAULT 0;
-- How often somebody signed in. Of the first time nobody is told.
ALTER TABLE subscribers ADD COLUMN logins BIGINT NOT NULL DEFAULT 0;
UPDATE subscribers SET logins = 1 WHERE EXISTS (SELECT 1 FROM login_sessions WHERE login_sessions.subscriber_id = subscribers.id);

-- +goose Down
ALTER TABLE subscribers DROP COLUMN logins;
ALTER TABLE subscribers DROP COLUMN epoch;
