-- +goose Up

-- A phone authenticates with its username before its project is known.
CREATE INDEX sip_credentials_named ON sip_credentials (username, id);
