-- +goose Up

-- What the kept name is: email, reference or full_name. It is '' for names that older versions have
-- kept.
ALTER TABLE deleted_names ADD COLUMN kind TEXT NOT NULL DEFAULT '';
