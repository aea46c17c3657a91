-- +goose Up
-- What was measured in the sound of a recording, as levels.Facts.Text writes it, and
-- its flags as bits: 1 silent, 2 one-way, 4 clipped, 8 dead air. '' where nothing
-- could be measured.
ALTER TABLE recordings ADD COLUMN levels TEXT NOT NULL DEFAULT '';
ALTER TABLE recordings ADD COLUMN flags BIGINT NOT NULL DEFAULT 0;

-- Few recordings have a flag, and those are looked for.
CREATE INDEX recordings_silent ON recordings (project_id, id) WHERE (flags & 1) <> 0;
CREATE INDEX recordings_one_way ON recordings (project_id, id) WHERE (flags & 2) <> 0;
CREATE INDEX recordings_clipped ON recordings (project_id, id) WHERE (flags & 4) <> 0;
CREATE INDEX recordings_dead_air ON recordings (project_id, id) WHERE (flags & 8) <> 0;

-- +goose Down
DROP INDEX recordings_dead_air;
DROP INDEX recordings_clipped;
DROP INDEX recordings_one_way;
DROP INDEX recordings_silent;
ALTER TABLE recordings DROP COLUMN flags;
ALTER TABLE recordings DROP COLUMN levels;
