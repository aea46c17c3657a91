-- +goose Up
-- To act as a subscriber in the fabric is a right of its own. Who has had a refresh token of
-- a client with fabric tokens has agreed to that: the page said so.
UPDATE consents SET scope = scope || ' fabric' WHERE EXISTS (
    SELECT 1 FROM clients c JOIN grants g ON g.client_id = c.id
    WHERE c.id = consents.client_id AND c.access_token = 'fabric' AND g.subscriber_id = consents.subscriber_id AND g.refresh_hash <> '');

-- +goose Down
UPDATE consents SET scope = replace(scope, ' fabric', '');
