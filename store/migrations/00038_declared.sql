-- +goose Up
-- What was made from a file, by `selvage apply`: that alone may be removed where the
-- file does not name it any more. A mark of what is not there any more does no harm.
CREATE TABLE declared (
    id          TEXT PRIMARY KEY,            -- of the key, client, subscriber, resource or webhook
    project_id  TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE
);
CREATE INDEX declared_project ON declared (project_id);

-- +goose Down
DROP TABLE declared;
