-- +goose Up

-- What the kept name is: email, reference or full_name. It is '' for older names that may be a
-- reference or a full name.
ALTER TABLE deleted_names ADD COLUMN kind TEXT NOT NULL DEFAULT '';
UPDATE deleted_names SET kind = 'email' WHERE name LIKE '%@%';
