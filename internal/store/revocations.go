package store

import (
	"context"
	"fmt"

	"github.com/selvage/selvage/internal/revocation"
)

var _ revocation.Log = (*Store)(nil)

// AddRevocation writes a revocation.
func (s *Store) AddRevocation(ctx context.Context, r revocation.Revocation) error {
	return s.change(ctx, func(t tx) error { return t.revoke(ctx, r) })
}

// revoke writes a revocation in the transaction of the change that causes it.
func (t tx) revoke(ctx context.Context, r revocation.Revocation) error {
	var seq int64
	if err := t.Row(ctx, `UPDATE sequences SET value = value + 1 WHERE name = 'revocations' RETURNING value`).Scan(&seq); err != nil {
		return fmt.Errorf("numbering revocation: %w", err)
	}
	_, err := t.Exec(ctx, `INSERT INTO revocations (seq, kind, id, until, expires) VALUES ($1, $2, $3, $4, $5)`,
		seq, r.Kind, r.ID, micros(r.Until), micros(r.Expires))
	if err != nil {
		return fmt.Errorf("inserting revocation: %w", err)
	}
	return nil
}

// RevocationsSince gives the revocations numbered after seq that still matter.
func (s *Store) RevocationsSince(ctx context.Context, seq int64) (found []revocation.Revocation, last int64, err error) {
	rows, err := s.read().Query(ctx, `SELECT seq, kind, id, until, expires FROM revocations WHERE seq > $1 AND expires > $2 ORDER BY seq`,
		seq, micros(s.now()))
	if err != nil {
		return nil, 0, fmt.Errorf("reading revocations: %w", err)
	}
	defer rows.Close()
	last = seq
	for rows.Next() {
		var r revocation.Revocation
		var until, expires int64
		if err := rows.Scan(&last, &r.Kind, &r.ID, &until, &expires); err != nil {
			return nil, 0, fmt.Errorf("reading revocations: %w", err)
		}
		r.Until, r.Expires = moment(until), moment(expires)
		found = append(found, r)
	}
	return found, last, rows.Err()
}

// SweepRevocations deletes the revocations that no living token can meet.
func (s *Store) SweepRevocations(ctx context.Context) error {
	return s.change(ctx, func(t tx) error {
		if _, err := t.Exec(ctx, `DELETE FROM revocations WHERE expires <= $1`, micros(s.now())); err != nil {
			return fmt.Errorf("sweeping revocations: %w", err)
		}
		return nil
	})
}
