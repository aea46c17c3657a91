-- +goose Up

-- Find subscribers by the host of their email address. Queries must repeat this expression literally.
CREATE INDEX subscribers_by_host ON subscribers (project_id, SUBSTR(email, LENGTH(RTRIM(email, REPLACE(email, '@', ''))) + 1), id)
    WHERE email <> '';
