-- +goose Up

-- The digits of the numbers of a call, in reverse: '' if a party is not a number, NULL until an older
-- row has been read.
ALTER TABLE recordings ADD COLUMN from_tail TEXT;
ALTER TABLE recordings ADD COLUMN to_tail TEXT;
CREATE INDEX recordings_from_tail ON recordings (project_id, from_tail, id) WHERE from_tail <> '';
CREATE INDEX recordings_to_tail ON recordings (project_id, to_tail, id) WHERE to_tail <> '';
CREATE INDEX recordings_unread ON recordings (id) WHERE from_tail IS NULL;
