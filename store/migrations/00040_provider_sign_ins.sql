-- +goose Up

-- When the person signed in to the upstream provider before a silent login; 0 if unknown.
ALTER TABLE login_sessions ADD COLUMN signed_in BIGINT NOT NULL DEFAULT 0;
