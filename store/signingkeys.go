package store

import (
	"context"
	"fmt"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/problem"
)

var signingKeyTable = table[fabric.SigningKey]{
	name:    "signing_keys",
	thing:   "signing key",
	columns: `id, project_id, sealed, created, starts`,
	fields:  func(k *fabric.SigningKey) []any { return []any{&k.ID, &k.ProjectID, &k.Sealed, &k.Created, &k.Starts} },
}

// CreateSigningKey inserts a signing key. If several callers insert the same key, the unique index
// lets only one of them succeed.
func (s *Keys) CreateSigningKey(ctx context.Context, k fabric.SigningKey) error {
	return s.once(ctx, audit.Of("signing_key.created", k.ProjectID, "signing_key", k.ID), func(t tx) error {
		return t.insertSigningKey(ctx, k)
	})
}

func (t tx) insertSigningKey(ctx context.Context, k fabric.SigningKey) error {
	return signingKeyTable.insertNew(ctx, t, &k, "project",
		problem.New(problem.Conflict, "conflict", "the project already has this signing key"))
}

// ListSigningKeys returns a project's signing keys in the order in which they come into use.
func (s *Keys) ListSigningKeys(ctx context.Context, projectID string) ([]fabric.SigningKey, error) {
	return signingKeyTable.gather(ctx, s.read(), `WHERE project_id = $1 ORDER BY starts`, projectID)
}

// RotateSigningKey adds a signing key. It deletes the keys that are older than the current key,
// which came into use at the time current. If alone is set, it deletes all other keys. Otherwise
// it returns problem.Conflict if the project already has a key that comes into use after current.
func (s *Keys) RotateSigningKey(ctx context.Context, k fabric.SigningKey, current time.Time, alone bool) error {
	e := audit.Of("signing_key.rotated", k.ProjectID, "signing_key", k.ID).With("starts", date(k.Starts))
	return s.change(ctx, e, func(t tx) error {
		// Concurrent rotations in the same project wait here for one another, so that each of them
		// sees the others' keys.
		res, err := t.Exec(ctx, `UPDATE projects SET updated = updated WHERE id = $1`, k.ProjectID)
		if err = requireRow(res, err, "project"); err != nil {
			return err
		}
		if !alone {
			if err := t.requireNewestKey(ctx, k.ProjectID, current); err != nil {
				return err
			}
		}
		if err := t.insertSigningKey(ctx, k); err != nil {
			return err
		}
		err = t.Later(ctx, `DELETE FROM signing_keys WHERE project_id = $1 AND id <> $2 AND (starts < $3 OR $4 = 1)`,
			k.ProjectID, k.ID, micros(current), flag(alone))
		if err != nil {
			return fmt.Errorf("deleting old signing keys: %w", err)
		}
		return nil
	})
}

// requireNewestKey returns an error if a signing key of the project comes into use after current.
func (t tx) requireNewestKey(ctx context.Context, projectID string, current time.Time) error {
	var n int
	err := t.Row(ctx, `SELECT COUNT(*) FROM signing_keys WHERE project_id = $1 AND starts > $2`,
		projectID, micros(current)).Scan(&n)
	if err != nil {
		return fmt.Errorf("counting newer signing keys: %w", err)
	}
	if n > 0 {
		return problem.New(problem.Conflict, "conflict", "the project already has a newer signing key")
	}
	return nil
}
