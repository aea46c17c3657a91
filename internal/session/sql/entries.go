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
func (s *Store) Get(ctx context.Context, key session.Key) (value []byte, err error) {
	err = s.db.Read().Row(ctx, `SELECT value FROM selvage_sessions WHERE kind = $1 AND id = $2 AND expires > $3`,
		key.Kind, key.ID, s.after(0)).Scan(&value)
	return value, wrap("getting", key, err)
}

// Take returns the value of a key and deletes it.
func (s *Store) Take(ctx context.Context, key session.Key) (value []byte, err error) {
	err = s.db.Once(ctx, func(t database.Tx) error {
		var expires int64
		err := t.Row(ctx, `DELETE FROM selvage_sessions WHERE kind = $1 AND id = $2 RETURNING value, expires`,
			key.Kind, key.ID).Scan(&value, &expires)
		if err == nil && expires <= s.after(0) {
			value, err = nil, sql.ErrNoRows
		}
		return err
	})
	return value, wrap("taking", key, err)
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

			var value []byte
			absent := t.Row(ctx, `SELECT value FROM selvage_sessions WHERE kind = $1 AND id = $2 AND expires > $3`,
				key.Kind, key.ID, s.after(0)).Scan(&value)
			if absent != nil {
				return absent
			}
			if !slices.Equal(value, bytes(old)) {
				return err
			}
			// Another caller has already written the same new value, so this is not a conflict.
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
func (s *Store) Incr(ctx context.Context, key session.Key, ttl time.Duration) (sum int64, err error) {
	err = s.db.Once(ctx, func(t database.Tx) error {
		return t.Row(ctx, `
			INSERT INTO selvage_sessions (kind, id, value, count, expires) VALUES ($1, $2, '', 1, $3)
			ON CONFLICT (kind, id) DO UPDATE SET
				count   = CASE WHEN selvage_sessions.expires <= $4 THEN 1 ELSE selvage_sessions.count + 1 END,
				expires = CASE WHEN selvage_sessions.expires <= $4 THEN excluded.expires
				               ELSE selvage_sessions.expires END
			RETURNING count`,
			key.Kind, key.ID, s.after(ttl), s.after(0)).Scan(&sum)
	})
	return sum, wrap("counting", key, err)
}

// maxSkew is the maximum difference between the clocks of two nodes, because a node is not ready if
// its clock differs from the database's by more than a minute.
const maxSkew = 2 * time.Minute

// Allow takes n events from a key's rate. The entry expires when all events are available again, so
// an expired entry and a missing entry mean the same.
func (s *Store) Allow(ctx context.Context, key session.Key, rate session.Rate, n int) (wait time.Duration, err error) {
	if n < 0 {
		err := s.db.Once(ctx, func(t database.Tx) error {
			_, err := t.Exec(ctx, `UPDATE selvage_sessions SET expires = expires - $3 WHERE kind = $1 AND id = $2`,
				key.Kind, key.ID, rate.Cost(-n).Microseconds())
			return err
		})
		return 0, wrap("limiting", key, err)
	}

	if n > rate.Burst {
		return rate.Cost(n - rate.Burst), ctx.Err()
	}

	err = s.db.Once(ctx, func(t database.Tx) error {
		now, cost := s.after(0), rate.Cost(n).Microseconds()

		// An entry expires when its key has recovered all events. If this is not after the time
		// latest, n events are available. Normally, an entry expires by the time most. If the clock
		// of the node that wrote the entry is ahead, the entry may expire up to maxSkew later. If
		// it expires even after the time ahead, a clock was set back, and n events are available,
		// too.
		most := now + rate.Slack().Microseconds()
		latest, ahead := most-cost, most+maxSkew.Microseconds()
		err := changed(t.Exec(ctx, `
			INSERT INTO selvage_sessions (kind, id, value, count, expires) VALUES ($1, $2, '', 0, $3)
			ON CONFLICT (kind, id) DO UPDATE SET
				expires = CASE WHEN selvage_sessions.expires <= $4 THEN excluded.expires
				               WHEN selvage_sessions.expires > $7 THEN $8
				               ELSE selvage_sessions.expires + $5 END
			WHERE selvage_sessions.expires <= $6 OR selvage_sessions.expires > $7`,
			key.Kind, key.ID, now+cost, now, cost, latest, ahead, most))
		if !errors.Is(err, problem.Conflict) {
			return err
		}

		full := latest // if the entry is deleted before it is read, the wait is 1 µs
		err = t.Row(ctx, `SELECT expires FROM selvage_sessions WHERE kind = $1 AND id = $2`,
			key.Kind, key.ID).Scan(&full)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		wait = time.Duration(max(full-latest, 1)) * time.Microsecond
		return nil
	})
	return wait, wrap("limiting", key, err)
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
	return problem.New(problem.Conflict, "conflict", "the entry has a different value")
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
