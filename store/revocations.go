package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/revocation"
)

// Revocations holds the log of revocations that all nodes follow.
type Revocations struct{ *core }

var _ revocation.Log = (*Store)(nil)

// AddRevocation writes a revocation.
func (s *Revocations) AddRevocation(ctx context.Context, r revocation.Revocation) error {
	return s.change(ctx, audit.Of("token.revoked", "", r.Kind, r.ID), func(t tx) error { return t.revoke(ctx, r) })
}

// revoke writes a revocation in the transaction of the change that causes it, as
// the last thing it does. The row of the sequence is locked until the commit, so that
// numbers appear in their order.
func (t tx) revoke(ctx context.Context, r revocation.Revocation) error {
	if err := t.Later(ctx, `UPDATE sequences SET value = value + 1 WHERE name = 'revocations'`); err != nil {
		return fmt.Errorf("numbering revocation: %w", err)
	}
	err := t.Later(ctx, `INSERT INTO revocations (seq, kind, id, until, expires) SELECT value, $1, $2, $3, $4 FROM sequences WHERE name = 'revocations'`,
		r.Kind, r.ID, micros(r.Until), micros(r.Expires))
	if err != nil {
		return fmt.Errorf("inserting revocation: %w", err)
	}
	return nil
}

// ending is a revocation that counts from now at least: the change that causes it may
// have waited for others, whose tokens it ends too.
func (s *core) ending(r revocation.Revocation) revocation.Revocation {
	r.Until = later(r.Until, s.now())
	return r
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// RevocationsSince returns the revocations numbered after seq that still matter, and
// the last number; all of them, where fewer were ever written than seq.
func (s *Revocations) RevocationsSince(ctx context.Context, seq int64) (found []revocation.Revocation, last int64, err error) {
	if found, last, err = s.revocationsSince(ctx, seq); err == nil && last < seq {
		found, last, err = s.revocationsSince(ctx, 0)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("reading revocations: %w", err)
	}
	return found, last, nil
}

// revocationsSince reads the number and the rows at one moment.
func (s *Revocations) revocationsSince(ctx context.Context, seq int64) (found []revocation.Revocation, last int64, err error) {
	rows, err := s.watch().Query(ctx, `SELECT s.value, COALESCE(r.seq, 0), COALESCE(r.kind, ''), COALESCE(r.id, ''), COALESCE(r.until, 0), COALESCE(r.expires, 0)
		FROM sequences s LEFT JOIN revocations r ON r.seq > $1 AND r.expires > $2 WHERE s.name = 'revocations' ORDER BY r.seq`, seq, micros(s.now()))
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	none := true
	for rows.Next() {
		var r revocation.Revocation
		var number, until, expires int64
		if err := rows.Scan(&last, &number, &r.Kind, &r.ID, &until, &expires); err != nil {
			return nil, 0, err
		}
		none = false
		if number > 0 {
			r.Until, r.Expires = moment(until), moment(expires)
			found = append(found, r)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, 0, err
	}
	if none {
		return nil, 0, errors.New("their sequence is gone")
	}
	return found, last, nil
}

// SweepRevocations deletes the revocations that no living token can meet.
func (s *Revocations) SweepRevocations(ctx context.Context) error {
	return s.once(ctx, audit.None("what has expired"), func(t tx) error {
		if _, err := t.Exec(ctx, `DELETE FROM revocations WHERE expires <= $1`, micros(s.now())); err != nil {
			return fmt.Errorf("sweeping revocations: %w", err)
		}
		return nil
	})
}
