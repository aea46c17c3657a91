-- +goose Up

-- A phone authenticates with the username of its SIP endpoint before its project is known.
CREATE INDEX resources_endpoints ON resources (display_name, id) WHERE type = 'sip_endpoint';
