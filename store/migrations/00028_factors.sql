-- +goose Up
-- What proves who somebody is beside a password. An owner is a subscriber or an
-- operator; whoever deletes one deletes these, too.
CREATE TABLE passkeys (
    id          TEXT PRIMARY KEY,
    owner_kind  TEXT NOT NULL,              -- subscriber | operator
    owner_id    TEXT NOT NULL,
    credential  TEXT NOT NULL,              -- its id, in base64url
    name        TEXT NOT NULL,
    record      TEXT NOT NULL,              -- the credential record, as JSON: a public key, no secret
    count       BIGINT NOT NULL,            -- of its signatures; 0 where it does not count
    synced      BIGINT NOT NULL,
    backed_up   BIGINT NOT NULL,
    created     BIGINT NOT NULL,
    used        BIGINT NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX passkeys_credential ON passkeys (credential);
CREATE INDEX passkeys_owner ON passkeys (owner_id, owner_kind, id);

CREATE TABLE totps (
    owner_kind  TEXT NOT NULL,
    owner_id    TEXT NOT NULL,
    id          TEXT NOT NULL,
    sealed      TEXT NOT NULL,              -- the secret, sealed by the master key
    step        BIGINT NOT NULL,            -- of the last code that was taken
    created     BIGINT NOT NULL,
    used        BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (owner_id, owner_kind)
);

-- A code is taken by whoever deletes its row.
CREATE TABLE recovery_codes (
    owner_kind  TEXT NOT NULL,
    owner_id    TEXT NOT NULL,
    hash        TEXT NOT NULL,              -- HMAC-SHA-256 under a key derived from the master key
    created     BIGINT NOT NULL,
    PRIMARY KEY (owner_id, owner_kind, hash)
);

-- Whether a login of the project's subscribers needs two factors.
ALTER TABLE projects ADD COLUMN require_factor BIGINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE projects DROP COLUMN require_factor;
DROP TABLE recovery_codes;
DROP TABLE totps;
DROP TABLE passkeys;
