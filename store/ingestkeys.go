package store

import (
	"context"
	"fmt"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
)

var ingestKeyTable = table[fabric.IngestKey]{
	name:    "ingest_keys",
	thing:   "ingest key",
	columns: `id, project_id, name, prefix, hash, created, expires, revoked, last_used`,
	fields: func(k *fabric.IngestKey) []any {
		return []any{&k.ID, &k.ProjectID, &k.Name, &k.Prefix, &k.Hash, &k.Created, &k.Expires, &k.Revoked, &k.LastUsed}
	},
}

// CreateIngestKey inserts an ingest key, unless its creator has lost rights since they were read.
func (s *Keys) CreateIngestKey(ctx context.Context, k fabric.IngestKey, by *fabric.Rights) error {
	e := audit.Of("ingest_key.created", k.ProjectID, "ingest_key", k.ID).With("name", k.Name)
	return s.change(ctx, e, func(t tx) error {
		if err := t.requireRights(ctx, by, s.now()); err != nil {
			return err
		}
		return ingestKeyTable.insert(ctx, t, &k, "project")
	})
}

// FindIngestKey finds an ingest key of a project, whether revoked or not.
func (s *Keys) FindIngestKey(ctx context.Context, projectID, id string) (fabric.IngestKey, error) {
	return ingestKeyTable.find(ctx, s.read(), `project_id = $1 AND id = $2`, projectID, id)
}

// FindIngestKeyByHash finds an ingest key by the hash of its secret, whether revoked or not.
func (s *Keys) FindIngestKeyByHash(ctx context.Context, hash string) (fabric.IngestKey, error) {
	return ingestKeyTable.find(ctx, s.read(), `hash = $1`, hash)
}

// ListIngestKeys returns a page of a project's ingest keys whose names, prefixes or ids contain
// each word of text. If text is "", all keys match.
func (s *Keys) ListIngestKeys(
	ctx context.Context, projectID, text string, q page.Query,
) (page.Page[fabric.IngestKey], error) {
	l := ingestKeyTable.listing(q.From)
	l.where.and(`project_id = $%d`, projectID)
	l.checks = containing(`name || ' ' || prefix || ' ' || id`, text)
	return l.page(ctx, s.read(), q)
}

// RevokeIngestKey revokes an ingest key.
func (s *Keys) RevokeIngestKey(ctx context.Context, projectID, id string, at time.Time) error {
	return s.once(ctx, audit.Of("ingest_key.revoked", projectID, "ingest_key", id), func(t tx) error {
		res, err := t.Exec(ctx, `UPDATE ingest_keys SET revoked = CASE WHEN revoked = 0 THEN $3 ELSE revoked END
			WHERE id = $1 AND project_id = $2`, id, projectID, micros(at))
		return requireRow(res, err, "ingest key")
	})
}

// TouchIngestKey records a use of an ingest key.
func (s *Keys) TouchIngestKey(ctx context.Context, id string, at time.Time) error {
	return s.once(ctx, audit.None("the use of a key"), func(t tx) error {
		_, err := t.Exec(ctx, `UPDATE ingest_keys SET last_used = $2 WHERE id = $1 AND last_used < $2`, id, micros(at))
		if err != nil {
			return fmt.Errorf("touching ingest key: %w", err)
		}
		return nil
	})
}
