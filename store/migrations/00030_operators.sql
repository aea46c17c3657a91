-- +goose Up
-- Who runs the installation: people with roles, their sessions in the dashboard, and
-- the links by which they are invited.
CREATE TABLE operators (
	id            TEXT PRIMARY KEY,
	email         TEXT NOT NULL UNIQUE, -- in NFC and lower case
	name          TEXT NOT NULL,
	password_hash TEXT NOT NULL,        -- '' where no password opens it
	disabled      BIGINT NOT NULL,
	created       BIGINT NOT NULL,
	updated       BIGINT NOT NULL
);

CREATE TABLE operator_roles (
	operator_id TEXT NOT NULL REFERENCES operators (id) ON DELETE CASCADE,
	project_id  TEXT REFERENCES projects (id) ON DELETE CASCADE, -- NULL is every project, and the installation
	role        TEXT NOT NULL
);
CREATE UNIQUE INDEX operator_roles_once ON operator_roles (operator_id, COALESCE(project_id, ''));
CREATE INDEX operator_roles_project ON operator_roles (project_id);

CREATE TABLE operator_sessions (
	id          TEXT PRIMARY KEY,
	operator_id TEXT NOT NULL REFERENCES operators (id) ON DELETE CASCADE,
	browser     TEXT NOT NULL,     -- digest of the cookie
	proven      BIGINT NOT NULL, -- 0 while a second factor is wanted
	amr         TEXT NOT NULL,
	began       BIGINT NOT NULL,
	fresh       BIGINT NOT NULL,   -- when the operator last proved who it is
	seen        BIGINT NOT NULL,
	expires     BIGINT NOT NULL,
	ended       BIGINT NOT NULL,   -- 0 while it has not been ended
	user_agent  TEXT NOT NULL,
	address     TEXT NOT NULL
);
CREATE UNIQUE INDEX operator_sessions_browser ON operator_sessions (browser);
CREATE INDEX operator_sessions_operator ON operator_sessions (operator_id, id);

CREATE TABLE operator_links (
	id          TEXT PRIMARY KEY,
	hash        TEXT NOT NULL UNIQUE, -- SHA-256 of the link's token
	operator_id TEXT REFERENCES operators (id) ON DELETE CASCADE, -- who may set a new password; NULL for one to come
	email       TEXT NOT NULL,        -- of the one to come; '' lets it say
	project_id  TEXT REFERENCES projects (id) ON DELETE CASCADE,
	role        TEXT NOT NULL,
	made_by     TEXT NOT NULL,        -- e-mail of who made it; '' for the command line
	created     BIGINT NOT NULL,
	expires     BIGINT NOT NULL,
	used        BIGINT NOT NULL       -- 0 while it is good
);

-- Whoever changes who is an owner waits here for the others that do.
INSERT INTO sequences (name, value) VALUES ('operators', 0);

-- +goose Down
DELETE FROM sequences WHERE name = 'operators';
DROP TABLE operator_links;
DROP TABLE operator_sessions;
DROP TABLE operator_roles;
DROP TABLE operators;
