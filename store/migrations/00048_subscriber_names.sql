-- +goose Up
-- Subscribers are found by the beginnings of what they are called, in small or large
-- letters, however many there are. Queries have these expressions as they stand here. The
-- last is the last word of a name to show.
CREATE INDEX subscribers_by_first ON subscribers (project_id, LOWER(first_name || ' ' || last_name), id) WHERE first_name <> '';
CREATE INDEX subscribers_by_last ON subscribers (project_id, LOWER(last_name || ' ' || first_name), id) WHERE last_name <> '';
CREATE INDEX subscribers_by_display ON subscribers (project_id, LOWER(display_name), id) WHERE display_name <> '';
CREATE INDEX subscribers_by_word ON subscribers (project_id, LOWER(SUBSTR(display_name, LENGTH(RTRIM(display_name, REPLACE(display_name, ' ', ''))) + 1)), id)
    WHERE display_name <> REPLACE(display_name, ' ', '');

-- +goose Down
DROP INDEX subscribers_by_word;
DROP INDEX subscribers_by_display;
DROP INDEX subscribers_by_last;
DROP INDEX subscribers_by_first;
