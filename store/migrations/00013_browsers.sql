-- +goose Up
-- Which browser holds a login, so that it is known after the session store was
-- emptied: the digest of the id in its cookie, and when it was here last.
ALTER TABLE login_sessions ADD COLUMN browser TEXT NOT NULL DEFAULT ''; -- '' where none does
ALTER TABLE login_sessions ADD COLUMN seen BIGINT NOT NULL DEFAULT 0;
CREATE INDEX login_sessions_browser ON login_sessions (browser) WHERE browser <> '';

-- +goose Down
DROP INDEX login_sessions_browser;
ALTER TABLE login_sessions DROP COLUMN seen;
ALTER TABLE login_sessions DROP COLUMN browser;
