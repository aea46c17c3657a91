package store

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
)

// RotateFamily moves a family on from a generation, once. The row of the first
// generation is made by its first use. Whoever comes too late revokes the
// family, and is told so without an error, since the revocation must stay.
func (s *Store) RotateFamily(ctx context.Context, u fabric.FamilyUse) (used bool, err error) {
	err = s.once(ctx, func(t tx) (err error) {
		used, err = t.rotate(ctx, u)
		return err
	})
	if err != nil || used {
		return used, err
	}
	return false, s.change(ctx, func(t tx) error {
		res, err := t.Exec(ctx, `UPDATE families SET revoked = 1 WHERE id = $1 AND revoked = 0`, u.ID)
		if err != nil {
			return fmt.Errorf("revoking family: %w", err)
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return err // unknown, or revoked before
		}
		return t.revoke(ctx, s.ending(u.Revocation))
	})
}

func (t tx) rotate(ctx context.Context, u fabric.FamilyUse) (bool, error) {
	var res sql.Result
	var err error
	if u.Generation == 0 {
		res, err = t.Exec(ctx, `INSERT INTO families (id, project_id, generation, expires) VALUES ($1, $2, 1, $3) ON CONFLICT (id) DO NOTHING`,
			u.ID, u.ProjectID, micros(u.Expires))
	} else {
		res, err = t.Exec(ctx, `UPDATE families SET generation = generation + 1, expires = CASE WHEN expires < $3 THEN $3 ELSE expires END
			WHERE id = $1 AND generation = $2 AND revoked = 0`, u.ID, u.Generation, micros(u.Expires))
	}
	if isForeignKey(err) {
		return false, problem.NoSuch("project")
	}
	if err != nil {
		return false, fmt.Errorf("rotating family: %w", err)
	}
	n, err := res.RowsAffected()
	return n == 1, err
}

// SweepFamilies deletes the families all of whose tokens have expired.
func (s *Store) SweepFamilies(ctx context.Context) error {
	return s.once(ctx, func(t tx) error {
		if _, err := t.Exec(ctx, `DELETE FROM families WHERE expires <= $1`, micros(s.now())); err != nil {
			return fmt.Errorf("sweeping families: %w", err)
		}
		return nil
	})
}
