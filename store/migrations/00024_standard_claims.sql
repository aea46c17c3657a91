-- +goose Up
-- The standard claims that are neither of the profile nor of the account: a JSON
-- object under the names of OpenID Connect Core, section 5.1.
ALTER TABLE subscribers ADD COLUMN claims TEXT NOT NULL DEFAULT '{}';
-- Whether somebody has shown that the e-mail is the subscriber's.
ALTER TABLE subscribers ADD COLUMN email_verified BIGINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE subscribers DROP COLUMN email_verified;
ALTER TABLE subscribers DROP COLUMN claims;
