-- +goose Up

-- Contains everything that the usage of a project needs, so that it reads no rows.
CREATE INDEX recordings_usage ON recordings
        (project_id, id, created, frames, sample_rate, bytes, status, price, media_key, deleted)
    WHERE bytes > 0;
