-- +goose Up

-- Where calls go that a subscriber does not take: addresses or phone numbers; '' for none.
ALTER TABLE subscribers ADD COLUMN forward_busy TEXT NOT NULL DEFAULT '';
ALTER TABLE subscribers ADD COLUMN forward_no_answer TEXT NOT NULL DEFAULT '';
ALTER TABLE subscribers ADD COLUMN ring_seconds BIGINT NOT NULL DEFAULT 0; -- before forward_no_answer; 0 is the default

-- The account for which a call through a gateway counts, such as the one who forwarded it; '' for the caller.
ALTER TABLE calls ADD COLUMN payer TEXT NOT NULL DEFAULT '';
ALTER TABLE calls ADD COLUMN lines BIGINT NOT NULL DEFAULT 1;              -- of the gateway that it uses
