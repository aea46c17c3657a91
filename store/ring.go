package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/keys"
)

// Ring stores the key ring: the keys that sign tokens and seal secrets, themselves sealed with the
// master key.
type Ring struct{ *core }

// errRingChanged is the error for a change of a ring that another node has changed.
var errRingChanged = problem.New(problem.Conflict, "ring_changed",
	"another node has just changed the key ring; retry")

// A ringTx contains the statements about the key ring in a transaction.
type ringTx struct{ tx }

func (t tx) ring() ringTx { return ringTx{t} }

var ringTable = table[keys.Record]{
	name:    "ring",
	thing:   "ring key",
	columns: `kid, use, state, sealed, created, activated, retired`,
	fields: func(r *keys.Record) []any {
		return []any{&r.Kid, &r.Use, &r.State, &r.Sealed, &r.Created, &r.Activated, &r.Retired}
	},
}

// RingKeys returns all keys of the ring, oldest first.
func (s *Ring) RingKeys(ctx context.Context) ([]keys.Record, error) {
	return ringTable.gather(ctx, s.read(), `ORDER BY kid`)
}

// RingVersion returns how many times the ring has changed.
func (s *Ring) RingVersion(ctx context.Context) (version int64, err error) {
	if err = s.watch().Row(ctx, `SELECT value FROM sequences WHERE name = 'ring'`).Scan(&version); err != nil {
		return 0, fmt.Errorf("reading version of ring: %w", err)
	}
	return version, nil
}

// ChangeRing changes the states of keys, and adds keys. The error is [problem.Conflict] if a key is
// no longer in the state from which it is moved, or if a use would get a second current or next key.
func (s *Ring) ChangeRing(ctx context.Context, moves []keys.Move, added []keys.Record) error {
	e := ringEvent(moves, added)
	if err := e.Check(); err != nil {
		return err
	}

	// changeOnce does not retry if the master key was replaced meanwhile, because the caller has
	// sealed the keys in added with the former master key.
	err := s.changeOnce(ctx, e, func(t tx) error {
		// Count first, because concurrent changes wait for each other here.
		if err := t.ring().countRing(ctx); err != nil {
			return err
		}
		for _, m := range moves {
			if err := t.ring().moveRingKey(ctx, m); err != nil {
				return err
			}
		}

		bind, err := s.binder(ctx, t)
		if err != nil {
			return err
		}
		for _, r := range added {
			if err := t.ring().addRingKey(ctx, r, bind(r.Kid)); err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, errReplaced) {
		return errRingChanged
	}
	return err
}

// countRing increments the version of the ring.
func (t ringTx) countRing(ctx context.Context) error {
	if err := t.Later(ctx, `UPDATE sequences SET value = value + 1 WHERE name = 'ring'`); err != nil {
		return fmt.Errorf("incrementing version of ring: %w", err)
	}
	return nil
}

// moveRingKey sets the state of a key. The error is errRingChanged if the key is no longer in the
// former state.
func (t ringTx) moveRingKey(ctx context.Context, m keys.Move) error {
	to := m.To
	res, err := t.Exec(ctx, `UPDATE ring SET state = $3, sealed = $4, activated = $5, retired = $6
		WHERE kid = $1 AND state = $2`,
		to.Kid, m.From, to.State, to.Sealed, micros(to.Activated), micros(to.Retired))
	if isUnique(err) {
		return errRingChanged
	}
	return requireRowOr(errRingChanged, res, err, "ring key")
}

// addRingKey inserts a key. bound is its authentication code; see binder.
func (t ringTx) addRingKey(ctx context.Context, r keys.Record, bound string) error {
	_, err := t.Exec(ctx, `INSERT INTO ring (`+ringTable.columns+`, bound) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
		r.Kid, r.Use, r.State, r.Sealed, micros(r.Created), micros(r.Activated), micros(r.Retired), bound)
	if isUnique(err) {
		return errRingChanged
	}
	if err != nil {
		return fmt.Errorf("inserting ring key: %w", err)
	}
	return nil
}

// SweepRing deletes the keys that were retired before the given time.
func (s *Ring) SweepRing(ctx context.Context, before time.Time) error {
	return s.change(ctx, audit.Of("ring.swept", "", "ring", "").With("before", date(before)), func(t tx) error {
		if err := t.ring().countRing(ctx); err != nil {
			return err
		}
		err := t.Later(ctx, `DELETE FROM ring WHERE state = 'retired' AND retired < $1`, micros(before))
		if err != nil {
			return fmt.Errorf("sweeping ring: %w", err)
		}
		return nil
	})
}
