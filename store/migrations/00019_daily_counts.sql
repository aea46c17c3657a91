-- +goose Up

-- How often something happened in a project on a day.
CREATE TABLE daily_counts (
    project_id  TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    day         BIGINT NOT NULL,             -- days since 1970, in UTC
    what        TEXT NOT NULL,
    n           BIGINT NOT NULL,
    PRIMARY KEY (project_id, day, what)
);

-- The last day and month on which a subscriber signed in, so that each is counted once a day.
CREATE TABLE active_days (
    subscriber_id  TEXT PRIMARY KEY REFERENCES subscribers (id) ON DELETE CASCADE,
    day            BIGINT NOT NULL,          -- days since 1970, in UTC
    month          BIGINT NOT NULL           -- months since 1970, in UTC
);

