-- +goose Up
-- Signing and sealing keys, sealed by the master key.
CREATE TABLE ring (
    kid      TEXT PRIMARY KEY,
    use      TEXT NOT NULL,             -- RS256 | ES256 | seal
    state    TEXT NOT NULL,             -- next | current | retired
    sealed   TEXT NOT NULL,
    created  BIGINT NOT NULL,
    retired  BIGINT NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX ring_current ON ring (use) WHERE state = 'current';
CREATE UNIQUE INDEX ring_next ON ring (use) WHERE state = 'next';

-- Numbers given in the order of commits: the row is locked until its transaction ends.
CREATE TABLE sequences (
    name   TEXT PRIMARY KEY,
    value  BIGINT NOT NULL
);
INSERT INTO sequences (name, value) VALUES ('revocations', 0);

CREATE TABLE revocations (
    seq      BIGINT PRIMARY KEY,
    kind     TEXT NOT NULL,             -- token | grant | family | session | subscriber | client | key | project
    id       TEXT NOT NULL,
    until    BIGINT NOT NULL,
    expires  BIGINT NOT NULL
);
CREATE INDEX revocations_expires ON revocations (expires);

-- +goose Down
DROP TABLE revocations;
DROP TABLE sequences;
DROP TABLE ring;
