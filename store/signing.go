package store

import (
	"context"
	"fmt"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/problem"
)

const signingColumns = `id, project_id, sealed, created, starts`

func scanSigningKey(row scanner) (k fabric.SigningKey, err error) {
	var created, starts int64
	err = row.Scan(&k.ID, &k.ProjectID, &k.Sealed, &created, &starts)
	k.Created, k.Starts = moment(created), moment(starts)
	return k, found(err, "signing key")
}

// CreateSigningKey inserts a key; the unique index decides among many callers.
func (s *Keys) CreateSigningKey(ctx context.Context, k fabric.SigningKey) error {
	return s.once(ctx, audit.Of("signing_key.created", k.ProjectID, "signing_key", k.ID), func(t tx) error {
		return t.insertSigningKey(ctx, k)
	})
}

func (t tx) insertSigningKey(ctx context.Context, k fabric.SigningKey) error {
	res, err := t.Exec(ctx, `INSERT INTO signing_keys (`+
		signingColumns+`) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING`,
		k.ID, k.ProjectID, k.Sealed, micros(k.Created), micros(k.Starts))
	if isForeignKey(err) {
		return problem.NoSuch("project")
	}
	return inserted(res, err, "signing key",
		problem.New(problem.Conflict, "conflict", "the project has such a signing key"))
}

// ListSigningKeys returns a project's keys in the order of their beginning.
func (s *Keys) ListSigningKeys(ctx context.Context, projectID string) ([]fabric.SigningKey, error) {
	return gather(ctx, s.read(), "listing signing keys", scanSigningKey,
		`SELECT `+signingColumns+` FROM signing_keys WHERE project_id = $1 ORDER BY starts`, projectID)
}

// RotateSigningKey adds a key, and deletes those that are over: before the current one,
// or all others.
func (s *Keys) RotateSigningKey(ctx context.Context, k fabric.SigningKey, current time.Time, alone bool) error {
	return s.change(ctx, audit.Of("signing_key.rotated", k.ProjectID, "signing_key", k.ID).With("starts",
		date(k.Starts)), func(t tx) error {
		if err := t.insertSigningKey(ctx, k); err != nil {
			return err
		}
		err := t.Later(ctx, `DELETE FROM signing_keys WHERE project_id = $1 AND id <> $2 AND (starts < $3 OR $4 = 1)`,
			k.ProjectID, k.ID, micros(current), flag(alone))
		if err != nil {
			return fmt.Errorf("deleting old signing keys: %w", err)
		}
		return nil
	})
}
