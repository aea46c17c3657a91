package store

import (
	"context"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/revocation"
)

var embedKeyTable = table[fabric.EmbedKey]{
	name:    "embed_keys",
	thing:   "embed key",
	columns: `id, project_id, address_id, name, prefix, hash, created, revoked`,
	fields: func(k *fabric.EmbedKey) []any {
		return []any{&k.ID, &k.ProjectID, &k.AddressID, &k.Name, &k.Prefix, &k.Hash, &k.Created, &k.Revoked}
	},
}

// CreateEmbedKey inserts an embed key.
func (s *Keys) CreateEmbedKey(ctx context.Context, k fabric.EmbedKey) error {
	e := audit.Of("embed_key.created", k.ProjectID, "embed_key", k.ID).With("name", k.Name, "address", k.AddressID)
	return s.once(ctx, e, func(t tx) error { return embedKeyTable.insert(ctx, t, &k, "address") })
}

// FindEmbedKeyByHash finds an embed key by the hash of its secret, whether revoked or not.
func (s *Keys) FindEmbedKeyByHash(ctx context.Context, hash string) (fabric.EmbedKey, error) {
	return embedKeyTable.find(ctx, s.read(), `hash = $1`, hash)
}

// ListEmbedKeys returns a page of a project's embed keys.
func (s *Keys) ListEmbedKeys(ctx context.Context, projectID string, q page.Query) (page.Page[fabric.EmbedKey], error) {
	l := embedKeyTable.listing(q.From)
	l.where.and(`project_id = $%d`, projectID)
	return l.page(ctx, s.read(), q)
}

// RevokeEmbedKey revokes an embed key and the tokens that were created with it.
func (s *Keys) RevokeEmbedKey(ctx context.Context, projectID string, r revocation.Revocation, at time.Time) error {
	return s.change(ctx, audit.Of("embed_key.revoked", projectID, "embed_key", r.ID), func(t tx) error {
		res, err := t.Exec(ctx, `UPDATE embed_keys SET revoked = CASE WHEN revoked = 0 THEN $3 ELSE revoked END
			WHERE id = $1 AND project_id = $2`, r.ID, projectID, micros(at))
		if err = requireRow(res, err, "embed key"); err != nil {
			return err
		}
		return t.revoke(ctx, s.ending(r))
	})
}
