-- +goose Up

-- The first digits of a number, without what separates them; see plain in recording_parties.go.
CREATE INDEX recordings_from_plain ON recordings (project_id,
        REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(from_address,
            '(0)', ''), ' ', ''), '-', ''), '.', ''), '(', ''), ')', ''), id)
    WHERE REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(from_address,
            '(0)', ''), ' ', ''), '-', ''), '.', ''), '(', ''), ')', '') <> '';
CREATE INDEX recordings_to_plain ON recordings (project_id,
        REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(to_address,
            '(0)', ''), ' ', ''), '-', ''), '.', ''), '(', ''), ')', ''), id)
    WHERE REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(to_address,
            '(0)', ''), ' ', ''), '-', ''), '.', ''), '(', ''), ')', '') <> '';
