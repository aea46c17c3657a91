-- +goose Up
ALTER TABLE projects ADD COLUMN media_auth TEXT NOT NULL DEFAULT 'public'; -- public | basic | signed

-- A recording may be there before its media: then it waits. Its status is one of
-- in-progress, paused, stopped too.
ALTER TABLE recordings ADD COLUMN media_key TEXT;                         -- names the media where the id does not
ALTER TABLE recordings ADD COLUMN waits BIGINT NOT NULL DEFAULT 0;        -- until when it waits; 0 if it does not
ALTER TABLE recordings ADD COLUMN trim TEXT NOT NULL DEFAULT 'do-not-trim';
ALTER TABLE recordings ADD COLUMN pause_behavior TEXT NOT NULL DEFAULT '';
ALTER TABLE recordings ADD COLUMN callback_url TEXT NOT NULL DEFAULT '';
ALTER TABLE recordings ADD COLUMN callback_events TEXT NOT NULL DEFAULT ''; -- with spaces between
ALTER TABLE recordings ADD COLUMN callback_method TEXT NOT NULL DEFAULT '';
CREATE UNIQUE INDEX recordings_media ON recordings (media_key) WHERE media_key IS NOT NULL;
CREATE INDEX recordings_waits ON recordings (waits) WHERE waits <> 0;

-- Lists leave deleted ones out unless they are asked for, however many there are.
CREATE INDEX recordings_live ON recordings (project_id, id) WHERE deleted = 0;

-- +goose Down
DROP INDEX recordings_live;
DROP INDEX recordings_waits;
DROP INDEX recordings_media;
ALTER TABLE recordings DROP COLUMN callback_method;
ALTER TABLE recordings DROP COLUMN callback_events;
ALTER TABLE recordings DROP COLUMN callback_url;
ALTER TABLE recordings DROP COLUMN pause_behavior;
ALTER TABLE recordings DROP COLUMN trim;
ALTER TABLE recordings DROP COLUMN waits;
ALTER TABLE recordings DROP COLUMN media_key;
ALTER TABLE projects DROP COLUMN media_auth;
