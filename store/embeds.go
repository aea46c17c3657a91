package store

import (
	"context"
	"fmt"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

const embedColumns = `id, project_id, address_id, name, prefix, hash, created, revoked`

func scanEmbedKey(row scanner) (k fabric.EmbedKey, err error) {
	var created, revoked int64
	err = row.Scan(&k.ID, &k.ProjectID, &k.AddressID, &k.Name, &k.Prefix, &k.Hash, &created, &revoked)
	k.Created, k.Revoked = moment(created), moment(revoked)
	return k, found(err, "embed key")
}

// CreateEmbedKey inserts a key.
func (s *Keys) CreateEmbedKey(ctx context.Context, k fabric.EmbedKey) error {
	return s.once(ctx, audit.Of("embed_key.created", k.ProjectID, "embed_key", k.ID).With(
		"name", k.Name, "address", k.AddressID), func(t tx) error {
		_, err := t.Exec(ctx, `INSERT INTO embed_keys (`+embedColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
			k.ID, k.ProjectID, k.AddressID, k.Name, k.Prefix, k.Hash, micros(k.Created), micros(k.Revoked))
		if isForeignKey(err) {
			return problem.NoSuch("address")
		}
		if err != nil {
			return fmt.Errorf("inserting embed key: %w", err)
		}
		return nil
	})
}

// FindEmbedKeyByHash finds a key, revoked or not.
func (s *Keys) FindEmbedKeyByHash(ctx context.Context, hash string) (fabric.EmbedKey, error) {
	return scanEmbedKey(s.read().Row(ctx, `SELECT `+embedColumns+` FROM embed_keys WHERE hash = $1`, hash))
}

// ListEmbedKeys returns a page of a project's keys.
func (s *Keys) ListEmbedKeys(ctx context.Context, projectID string, q page.Query) (page.Page[fabric.EmbedKey], error) {
	l := listing[fabric.EmbedKey]{
		thing: "embed keys", columns: embedColumns, from: "embed_keys", key: []string{"id"}, start: startAt(q.From),
		scan: scanEmbedKey, id: func(k fabric.EmbedKey) string { return k.ID },
	}
	l.where.and(`project_id = $%d`, projectID)
	return l.page(ctx, s.read(), q)
}

// RevokeEmbedKey ends a key and the tokens that it gave.
func (s *Keys) RevokeEmbedKey(ctx context.Context, projectID string, r revocation.Revocation, at time.Time) error {
	return s.change(ctx, audit.Of("embed_key.revoked", projectID, "embed_key", r.ID), func(t tx) error {
		res, err := t.Exec(ctx, `UPDATE embed_keys SET revoked = CASE WHEN revoked = 0 THEN $3 ELSE revoked END WHERE id = $1 AND project_id = $2`,
			r.ID, projectID, micros(at))
		if err := oneRow(res, err, "embed key"); err != nil {
			return err
		}
		return t.revoke(ctx, s.ending(r))
	})
}
