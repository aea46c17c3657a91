-- +goose Up

-- 1 for logins with an upstream provider that may have recognized the browser without a sign-in.
ALTER TABLE login_sessions ADD COLUMN silent BIGINT NOT NULL DEFAULT 0;
