-- +goose Up
-- With the refresh token before it the seed, sealed, makes a grant's refresh token;
-- and since when it is that.
ALTER TABLE grants ADD COLUMN seed TEXT NOT NULL DEFAULT '';
ALTER TABLE grants ADD COLUMN rotated BIGINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE grants DROP COLUMN seed;
ALTER TABLE grants DROP COLUMN rotated;
