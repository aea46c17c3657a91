-- +goose Up
-- Keys take turns: when one began to sign or seal, and a number that each change
-- of the ring makes larger, which every node reads once a second.
ALTER TABLE ring ADD COLUMN activated BIGINT NOT NULL DEFAULT 0;
UPDATE ring SET activated = created WHERE state <> 'next';
INSERT INTO sequences (name, value) VALUES ('ring', 0);

-- +goose Down
DELETE FROM sequences WHERE name = 'ring';
ALTER TABLE ring DROP COLUMN activated;
