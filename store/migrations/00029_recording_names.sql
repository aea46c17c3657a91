-- +goose Up

-- The name of the file, as its sender named it; '' if unknown.
ALTER TABLE recordings ADD COLUMN name TEXT NOT NULL DEFAULT '';

-- The words by which a recording is found, each between two spaces; NULL until an older row has been
-- read. recording_words has a row for each of them.
ALTER TABLE recordings ADD COLUMN words TEXT;
CREATE INDEX recordings_unindexed ON recordings (id) WHERE words IS NULL;
CREATE TABLE recording_words (
    project       TEXT NOT NULL,             -- of the recording
    word          TEXT NOT NULL,             -- in lowercase
    recording_id  TEXT NOT NULL REFERENCES recordings (id) ON DELETE CASCADE,
    PRIMARY KEY (project, word, recording_id)
);
CREATE INDEX recording_words_recording ON recording_words (recording_id);
