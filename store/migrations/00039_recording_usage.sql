-- +goose Up

-- Contains all columns that the usage of a project needs, by day, so that its query reads and sorts no rows.
-- Queries must repeat the expression literally.
CREATE INDEX recordings_usage ON recordings
        (project_id, (created / 86400000000), id, created, frames, sample_rate, bytes, status, price, media_key,
            deleted)
    WHERE bytes > 0;
