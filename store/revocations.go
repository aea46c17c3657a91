package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/revocation"
)

// Revocations holds the log of revocations, which all nodes read.
type Revocations struct{ *core }

var _ revocation.Log = (*Store)(nil)

// AddRevocation writes a revocation.
func (s *Revocations) AddRevocation(ctx context.Context, r revocation.Revocation) error {
	return s.change(ctx, audit.Of("token.revoked", "", r.Kind, r.ID), func(t tx) error { return t.revoke(ctx, r) })
}

// revoke writes a revocation in the transaction of the change that causes it. It must come last in
// the change: it locks the row of the sequence until the commit, so that numbers become visible in
// order.
func (t tx) revoke(ctx context.Context, r revocation.Revocation) error {
	if err := t.Later(ctx, `UPDATE sequences SET value = value + 1 WHERE name = 'revocations'`); err != nil {
		return fmt.Errorf("numbering revocation: %w", err)
	}
	err := t.Later(ctx, `INSERT INTO revocations (seq, kind, id, until, expires)
		SELECT value, $1, $2, $3, $4 FROM sequences WHERE name = 'revocations'`,
		r.Kind, r.ID, micros(r.Until), micros(r.Expires))
	if err != nil {
		return fmt.Errorf("inserting revocation: %w", err)
	}
	return nil
}

// ending returns r extended to all tokens issued so far. The change that causes the revocation may
// have waited for changes that issued tokens, and must also revoke these tokens.
func (c *core) ending(r revocation.Revocation) revocation.Revocation {
	r.Until = later(r.Until, c.now())
	return r
}

// RevocationsSince returns the revocations with a number above seq that have not expired, and the
// last number. If the last number is below seq, it returns all revocations.
func (s *Revocations) RevocationsSince(
	ctx context.Context, seq int64,
) (found []revocation.Revocation, last int64, err error) {
	found, last, err = s.watch().revocationsSince(ctx, seq, s.now())
	if err == nil && last < seq {
		found, last, err = s.watch().revocationsSince(ctx, 0, s.now())
	}
	return found, last, err
}

// revocationsSince reads the last number and the rows in one query, so that they match.
func (t tx) revocationsSince(
	ctx context.Context, seq int64, now time.Time,
) (found []revocation.Revocation, last int64, err error) {
	type numbered struct {
		revocation.Revocation
		seq int64
	}
	scan := func(row scanner) (r numbered, err error) {
		err = row.Scan(&last, &r.seq, &r.Kind, &r.ID, scanTarget(&r.Until), scanTarget(&r.Expires))
		return r, err
	}

	rows, err := gather(ctx, t, "reading revocations", scan, `SELECT s.value, COALESCE(r.seq, 0), COALESCE(r.kind, ''),
			COALESCE(r.id, ''), COALESCE(r.until, 0), COALESCE(r.expires, 0)
		FROM sequences s LEFT JOIN revocations r ON r.seq > $1 AND r.expires > $2
		WHERE s.name = 'revocations' ORDER BY r.seq`, seq, micros(now))
	if err != nil {
		return nil, 0, err
	}
	if len(rows) == 0 {
		return nil, 0, errors.New("reading revocations: their sequence is missing")
	}

	for _, r := range rows {
		if r.seq > 0 { // otherwise the row contains only the last number
			found = append(found, r.Revocation)
		}
	}
	return found, last, nil
}

// SweepRevocations deletes the revocations whose tokens have all expired.
func (s *Revocations) SweepRevocations(ctx context.Context) error {
	return s.sweep(ctx, `DELETE FROM revocations WHERE seq IN (
		SELECT seq FROM revocations WHERE expires <= $2 ORDER BY expires LIMIT $1)`, micros(s.now()))
}
