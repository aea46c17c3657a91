package sql

import (
	"context"
	"fmt"
	"time"

	"github.com/selvage/selvage/internal/database"
)

// sweepBatch is the maximum number of rows that one statement deletes. It limits how long a login
// may have to wait for a sweep.
const sweepBatch = 500

// sweepEvery deletes expired entries periodically, until the store closes.
func (s *Store) sweepEvery(period time.Duration) {
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_ = s.sweep(context.Background()) // the next sweep deletes remaining entries, which are never returned
		case <-s.stop:
			return
		}
	}
}

// sweep deletes all expired entries, in batches. On PostgreSQL, only the condition outside of the
// subquery is checked again if the sweep has waited for a change that renewed an entry.
func (s *Store) sweep(ctx context.Context) error {
	for {
		var n int64
		err := s.db.Once(ctx, func(t database.Tx) error {
			res, err := t.Exec(ctx, `
				DELETE FROM selvage_sessions WHERE (kind, id) IN (
					SELECT kind, id FROM selvage_sessions WHERE expires <= $1 ORDER BY expires LIMIT $2)
				AND expires <= $1`,
				s.after(0), sweepBatch)
			if err != nil {
				return err
			}
			n, err = res.RowsAffected()
			return err
		})

		if err != nil {
			return fmt.Errorf("sweeping sessions: %w", err)
		}
		if n < sweepBatch {
			return nil
		}
	}
}
