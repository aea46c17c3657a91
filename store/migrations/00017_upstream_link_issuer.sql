-- +goose Up

-- A sub is unique only at its issuer, and the issuer of a provider can be changed.
ALTER TABLE upstream_links ADD COLUMN issuer TEXT NOT NULL DEFAULT '';
UPDATE upstream_links SET issuer = (SELECT u.issuer FROM upstreams u WHERE u.id = upstream_links.upstream_id);
DROP INDEX upstream_links_subject;
CREATE UNIQUE INDEX upstream_links_subject ON upstream_links (upstream_id, issuer, subject);
