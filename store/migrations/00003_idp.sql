-- +goose Up
CREATE TABLE clients (
    id            TEXT PRIMARY KEY,
    project_id    TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    name          TEXT NOT NULL,
    type          TEXT NOT NULL,             -- spa | native | web | service
    profile       TEXT NOT NULL,             -- default | mobile-legacy
    auth_method   TEXT NOT NULL,             -- none | client_secret_basic | client_secret_post
    secret_hash   TEXT NOT NULL DEFAULT '',
    first_party   BIGINT NOT NULL DEFAULT 0,
    pkce_optional BIGINT NOT NULL DEFAULT 0,
    redirect_uris TEXT NOT NULL DEFAULT '[]', -- JSON array
    logout_uris   TEXT NOT NULL DEFAULT '[]', -- JSON array
    grants        TEXT NOT NULL,             -- space-separated, as scopes
    scopes        TEXT NOT NULL,
    access_token  TEXT NOT NULL,             -- fabric | jwt
    id_token_alg  TEXT NOT NULL,             -- RS256 | ES256
    created       BIGINT NOT NULL,
    updated       BIGINT NOT NULL
);
CREATE INDEX clients_project ON clients (project_id, id);

CREATE TABLE login_sessions (
    id            TEXT PRIMARY KEY,
    project_id    TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    subscriber_id TEXT NOT NULL REFERENCES subscribers (id) ON DELETE CASCADE,
    auth_time     BIGINT NOT NULL,
    amr           TEXT NOT NULL,
    user_agent    TEXT NOT NULL,
    address       TEXT NOT NULL,             -- where the login came from
    expires       BIGINT NOT NULL,           -- the cookie's absolute end
    ended         BIGINT NOT NULL DEFAULT 0  -- 0 while it has not been ended
);
CREATE INDEX login_sessions_subscriber ON login_sessions (subscriber_id, id);

CREATE TABLE grants (
    id            TEXT PRIMARY KEY,
    project_id    TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    client_id     TEXT NOT NULL REFERENCES clients (id) ON DELETE CASCADE,
    subscriber_id TEXT NOT NULL REFERENCES subscribers (id) ON DELETE CASCADE,
    session_id    TEXT NOT NULL,
    scope         TEXT NOT NULL,
    auth_time     BIGINT NOT NULL,
    amr           TEXT NOT NULL,
    refresh_hash  TEXT NOT NULL DEFAULT '',  -- '' where no refresh token was given
    created       BIGINT NOT NULL,
    idle_until    BIGINT NOT NULL,           -- pushed on by each refresh
    expires       BIGINT NOT NULL,
    revoked       BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX grants_subscriber ON grants (subscriber_id, id);
CREATE INDEX grants_session ON grants (session_id);

-- A code is redeemed once: by whoever inserts its hash.
CREATE TABLE redeemed_codes (
    hash      TEXT PRIMARY KEY,
    grant_id  TEXT NOT NULL,
    client_id TEXT NOT NULL,
    expires   BIGINT NOT NULL
);
CREATE INDEX redeemed_codes_expires ON redeemed_codes (expires);

CREATE TABLE consents (
    subscriber_id TEXT NOT NULL REFERENCES subscribers (id) ON DELETE CASCADE,
    client_id     TEXT NOT NULL REFERENCES clients (id) ON DELETE CASCADE,
    scope         TEXT NOT NULL,             -- space-separated: everything agreed to so far
    updated       BIGINT NOT NULL,
    PRIMARY KEY (subscriber_id, client_id)
);

-- +goose Down
DROP TABLE consents;
DROP TABLE redeemed_codes;
DROP TABLE grants;
DROP TABLE login_sessions;
DROP TABLE clients;
