-- +goose Up
-- What operators did, and who was shown a secret, is found by who did it. All else that
-- happens, which is most, costs nothing here. Queries have the condition as it stands.
CREATE INDEX audit_actor ON audit (actor_id, id) WHERE (actor_kind = 'operator' OR action = 'api_key.created' OR action = 'api_key.rotated'
    OR action = 'embed_key.created' OR action = 'client.created' OR action = 'client.secret_rotated');

-- +goose Down
DROP INDEX audit_actor;
