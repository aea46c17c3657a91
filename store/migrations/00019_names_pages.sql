-- +goose Up
-- What two names have in common that are the same to who reads them: no two resources
-- of a type have the same. NULL where none was given, or before there was this column.
ALTER TABLE resources ADD COLUMN name_digest TEXT;
CREATE UNIQUE INDEX resources_name ON resources (project_id, type, name_digest);

-- The addresses of disabled subscribers are listed nowhere. Each way to list the others
-- has its index, which is read from where a page begins.
ALTER TABLE addresses ADD COLUMN hidden BIGINT NOT NULL DEFAULT 0;
UPDATE addresses SET hidden = 1 WHERE resource_id IN (SELECT id FROM subscribers WHERE disabled <> 0);
DROP INDEX addresses_project;
DROP INDEX addresses_sorted;
CREATE INDEX addresses_by_id ON addresses (project_id, id) WHERE hidden = 0;
CREATE INDEX addresses_by_name ON addresses (project_id, name, id) WHERE hidden = 0;
CREATE INDEX addresses_by_type ON addresses (project_id, type, id) WHERE hidden = 0;
CREATE INDEX addresses_by_type_name ON addresses (project_id, type, name, id) WHERE hidden = 0;

-- +goose Down
DROP INDEX addresses_by_type_name;
DROP INDEX addresses_by_type;
DROP INDEX addresses_by_name;
DROP INDEX addresses_by_id;
CREATE INDEX addresses_project ON addresses (project_id, id);
CREATE INDEX addresses_sorted ON addresses (project_id, name, id);
ALTER TABLE addresses DROP COLUMN hidden;
DROP INDEX resources_name;
ALTER TABLE resources DROP COLUMN name_digest;
