-- +goose Up

-- The deletion of a client or project also deletes these rows, and finds them by these indexes.
CREATE INDEX grants_client ON grants (client_id);
CREATE INDEX grants_project ON grants (project_id);
CREATE INDEX consents_client ON consents (client_id);
CREATE INDEX login_sessions_project ON login_sessions (project_id);
