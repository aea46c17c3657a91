-- +goose Up

-- The last attempt to deliver an event.
ALTER TABLE webhook_deliveries ADD COLUMN took BIGINT NOT NULL DEFAULT 0;       -- microseconds; 0 before the first attempt
ALTER TABLE webhook_deliveries ADD COLUMN response TEXT NOT NULL DEFAULT '';    -- beginning of the response's body
ALTER TABLE webhook_deliveries ADD COLUMN refused TEXT NOT NULL DEFAULT '';     -- address to which it was not sent
