-- +goose Up
-- The digest of the mark of the browser that a login was made in. It stays as it is
-- while the browser's cookie is renewed, and when another login takes the place of this
-- one: by it signing out finds all that were made there.
ALTER TABLE login_sessions ADD COLUMN mark TEXT NOT NULL DEFAULT ''; -- '' where it is not known
CREATE INDEX login_sessions_mark ON login_sessions (mark, id) WHERE mark <> '';

-- +goose Down
DROP INDEX login_sessions_mark;
ALTER TABLE login_sessions DROP COLUMN mark;
