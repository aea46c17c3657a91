package sql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/selvage/selvage/internal/database"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

// Put sets the value of a key.
func (s *Store) Put(ctx context.Context, key session.Key, value []byte, ttl time.Duration) error {
	err := s.db.Once(ctx, func(t database.Tx) error {
		_, err := t.Exec(ctx, `
			INSERT INTO selvage_sessions (kind, id, value, count, expires) VALUES ($1, $2, $3, 0, $4)
			ON CONFLICT (kind, id) DO UPDATE SET value = excluded.value, count = 0, expires = excluded.expires`,
			key.Kind, key.ID, bytes(value), s.after(ttl))
		return err
	})
	return wrap("putting", key, err)
}

// Get returns the value of a key.
func (s *Store) Get(ctx context.Context, key session.Key) ([]byte, error) {
	var value []byte
	row := s.db.Read().Row(ctx, `SELECT value FROM selvage_sessions WHERE kind = $1 AND id = $2 AND expires > $3`,
		key.Kind, key.ID, s.after(0))
	if err := row.Scan(&value); err != nil {
		return nil, wrap("getting", key, err)
	}
	return value, nil
}

// Take returns the value of a key and deletes it.
func (s *Store) Take(ctx context.Context, key session.Key) ([]byte, error) {
	var value []byte
	err := s.db.Once(ctx, func(t database.Tx) error {
		var expires int64
		row := t.Row(ctx, `DELETE FROM selvage_sessions WHERE kind = $1 AND id = $2 RETURNING value, expires`,
			key.Kind, key.ID)
		if err := row.Scan(&value, &expires); err != nil {
			return err
		}
		if expires <= s.after(0) {
			return sql.ErrNoRows
		}
		return nil
	})
	if err != nil {
		return nil, wrap("taking", key, err)
	}
	return value, nil
}

// Add sets the value of a key that does not exist or has expired.
func (s *Store) Add(ctx context.Context, key session.Key, value []byte, ttl time.Duration) error {
	err := s.db.Once(ctx, func(t database.Tx) error {
		return changed(t.Exec(ctx, `
			INSERT INTO selvage_sessions (kind, id, value, count, expires) VALUES ($1, $2, $3, 0, $4)
			ON CONFLICT (kind, id) DO UPDATE SET value = excluded.value, count = 0, expires = excluded.expires
			WHERE selvage_sessions.expires <= $5`,
			key.Kind, key.ID, bytes(value), s.after(ttl), s.after(0)))
	})
	return wrap("adding", key, err)
}

// CompareAndSwap replaces the value of a key with new if the value equals old.
func (s *Store) CompareAndSwap(ctx context.Context, key session.Key, old, new []byte, ttl time.Duration) error {
	err := s.db.Once(ctx, func(t database.Tx) error {
		for {
			err := changed(t.Exec(ctx, `
				UPDATE selvage_sessions SET value = $4, expires = $5
				WHERE kind = $1 AND id = $2 AND value = $3 AND expires > $6`,
				key.Kind, key.ID, bytes(old), bytes(new), s.after(ttl), s.after(0)))
			if !errors.Is(err, problem.Conflict) {
				return err
			}

			var current []byte
			row := t.Row(ctx, `SELECT value FROM selvage_sessions WHERE kind = $1 AND id = $2 AND expires > $3`,
				key.Kind, key.ID, s.after(0))
			if err := row.Scan(&current); err != nil {
				return err
			}
			if !slices.Equal(current, bytes(old)) {
				return err
			}
			// Another change has set the old value since the update, so try again.
		}
	})
	return wrap("swapping", key, err)
}

// Delete removes a key.
func (s *Store) Delete(ctx context.Context, key session.Key) error {
	err := s.db.Once(ctx, func(t database.Tx) error {
		_, err := t.Exec(ctx, `DELETE FROM selvage_sessions WHERE kind = $1 AND id = $2`, key.Kind, key.ID)
		return err
	})
	return wrap("deleting", key, err)
}

// Incr adds one to a counter.
func (s *Store) Incr(ctx context.Context, key session.Key, ttl time.Duration) (int64, error) {
	var sum int64
	err := s.db.Once(ctx, func(t database.Tx) error {
		return t.Row(ctx, `
			INSERT INTO selvage_sessions (kind, id, value, count, expires) VALUES ($1, $2, '', 1, $3)
			ON CONFLICT (kind, id) DO UPDATE SET
				count   = CASE WHEN selvage_sessions.expires <= $4 THEN 1 ELSE selvage_sessions.count + 1 END,
				expires = CASE WHEN selvage_sessions.expires <= $4 THEN excluded.expires
				               ELSE selvage_sessions.expires END
			RETURNING count`,
			key.Kind, key.ID, s.after(ttl), s.after(0)).Scan(&sum)
	})
	if err != nil {
		return 0, wrap("counting", key, err)
	}
	return sum, nil
}

// maxSkew is the maximum difference between the clocks of two nodes, because a node is not ready if
// its clock differs from the database's by more than a minute.
const maxSkew = 2 * time.Minute

// Allow takes n events from a key's rate. The entry expires when all events are available again, so
// an expired entry and a missing entry mean the same.
func (s *Store) Allow(ctx context.Context, key session.Key, rate session.Rate, n int) (time.Duration, error) {
	if n < 0 {
		return 0, s.giveBack(ctx, key, rate.Cost(-n))
	}
	if n > rate.Burst {
		return rate.Cost(n - rate.Burst), ctx.Err()
	}

	var wait time.Duration
	err := s.db.Once(ctx, func(t database.Tx) error {
		now := s.after(0)
		cost := rate.Cost(n).Microseconds()
		// An entry expires at fullExpiry at the latest, unless the clock of the node that wrote it
		// is ahead. In that case it may expire up to maxSkew later, at skewedExpiry. If it expires
		// even later, a clock was set back or the rate was changed. The n events are then allowed,
		// and the entry expires at fullExpiry.
		fullExpiry := now + rate.Slack().Microseconds()
		skewedExpiry := fullExpiry + maxSkew.Microseconds()
		// If the entry expires at latestExpiry or earlier, n events are available.
		latestExpiry := fullExpiry - cost
		err := changed(t.Exec(ctx, `
			INSERT INTO selvage_sessions (kind, id, value, count, expires) VALUES ($1, $2, '', 0, $3)
			ON CONFLICT (kind, id) DO UPDATE SET
				expires = CASE WHEN selvage_sessions.expires <= $4 THEN excluded.expires
				               WHEN selvage_sessions.expires > $7 THEN $8
				               ELSE selvage_sessions.expires + $5 END
			WHERE selvage_sessions.expires <= $6 OR selvage_sessions.expires > $7`,
			key.Kind, key.ID, now+cost, now, cost, latestExpiry, skewedExpiry, fullExpiry))
		if !errors.Is(err, problem.Conflict) {
			return err
		}

		expires := latestExpiry // if the entry is deleted before it is read, the wait is 1 µs
		row := t.Row(ctx, `SELECT expires FROM selvage_sessions WHERE kind = $1 AND id = $2`, key.Kind, key.ID)
		if err := row.Scan(&expires); err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		wait = time.Duration(max(expires-latestExpiry, 1)) * time.Microsecond
		return nil
	})
	if err != nil {
		return 0, wrap("limiting", key, err)
	}
	return wait, nil
}

// giveBack makes events with the given total cost available again.
func (s *Store) giveBack(ctx context.Context, key session.Key, cost time.Duration) error {
	err := s.db.Once(ctx, func(t database.Tx) error {
		_, err := t.Exec(ctx, `UPDATE selvage_sessions SET expires = expires - $3 WHERE kind = $1 AND id = $2`,
			key.Kind, key.ID, cost.Microseconds())
		return err
	})
	return wrap("limiting", key, err)
}

// after returns the time that is ttl from now, in Unix microseconds.
func (s *Store) after(ttl time.Duration) int64 { return s.now().Add(ttl).UnixMicro() }

// bytes returns value, or an empty slice if value is nil. A nil slice would be stored as NULL.
func bytes(value []byte) []byte {
	if value == nil {
		return []byte{}
	}
	return value
}

// changed returns problem.Conflict if a statement has changed no row.
func changed(res sql.Result, err error) error {
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n > 0 {
		return err
	}
	return problem.New(problem.Conflict, "conflict", "the entry exists already, or has a different value")
}

// wrap converts an error from the database to one that the interface defines. It names only the
// kind of the key, because ids are digests of secrets.
func wrap(doing string, key session.Key, err error) error {
	switch {
	case err == nil, errors.Is(err, problem.Conflict):
		return err
	case errors.Is(err, sql.ErrNoRows):
		return problem.NoSuch(key.Kind)
	}
	return fmt.Errorf("%s %s: %w", doing, key.Kind, err)
}
