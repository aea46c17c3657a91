-- +goose Up

-- The master keys that this installation has had, from the first rotation on. The newest is not stored:
-- nodes find theirs by its fingerprint. It seals the earlier ones.
CREATE TABLE master_keys (
    generation  BIGINT PRIMARY KEY,           -- from 0
    fingerprint TEXT NOT NULL,
    sealed      TEXT NOT NULL,                -- '' for the newest
    leaked      BIGINT NOT NULL DEFAULT 0,    -- 1 if it no longer proves anything
    replaced    BIGINT NOT NULL DEFAULT 0,    -- when the next one replaced it; 0 for the newest
    resealed    BIGINT NOT NULL DEFAULT 0     -- when all secrets were last found sealed with it
);

-- The generation of the master key with which the end of a lane was written.
ALTER TABLE audit_heads ADD COLUMN generation BIGINT NOT NULL DEFAULT 0;

-- The parts of lanes that were written under earlier master keys.
CREATE TABLE audit_spans (
    lane        BIGINT NOT NULL,
    generation  BIGINT NOT NULL,              -- of the master key
    seq         BIGINT NOT NULL,              -- the last event of the part
    hash        TEXT NOT NULL,                -- its hash
    mac         TEXT NOT NULL,
    PRIMARY KEY (lane, generation)
);
