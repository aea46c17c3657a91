package sql

import (
	"context"
	"fmt"
	"time"

	"github.com/selvage/selvage/internal/database"
)

// sweepBatch bounds how many rows one sweep deletes in one statement, and so how
// long a login may have to wait for it.
const sweepBatch = 500

// sweepEvery deletes what has expired, until the store closes.
func (s *Store) sweepEvery(period time.Duration) {
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_ = s.sweep(context.Background()) // what is left is swept the next time, and never given
		case <-s.stop:
			return
		}
	}
}

// sweep deletes all entries that have expired, a batch at a time.
func (s *Store) sweep(ctx context.Context) error {
	for {
		var n int64
		err := s.db.Once(ctx, func(t database.Tx) error {
			res, err := t.Exec(ctx, `
				DELETE FROM selvage_sessions WHERE (kind, id) IN (
					SELECT kind, id FROM selvage_sessions WHERE expires <= $1 ORDER BY expires LIMIT $2)`,
				s.after(0), sweepBatch)
			if err == nil {
				n, err = res.RowsAffected()
			}
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
