package store

import (
	"context"
	"fmt"
	"time"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/keys"
)

// Ring holds the key ring.
type Ring struct{ *core }

var _ keys.Store = (*Store)(nil)

// RingKeys returns all keys of the ring, oldest first.
func (s *Ring) RingKeys(ctx context.Context) ([]keys.Record, error) {
	return gather(ctx, s.read(), "reading ring", scanRingKey,
		`SELECT kid, use, state, sealed, created, activated, retired FROM ring ORDER BY kid`)
}

func scanRingKey(row scanner) (r keys.Record, err error) {
	var created, activated, retired int64
	err = row.Scan(&r.Kid, &r.Use, &r.State, &r.Sealed, &created, &activated, &retired)
	r.Created, r.Activated, r.Retired = moment(created), moment(activated), moment(retired)
	return r, err
}

// RingVersion returns the number of changes of the ring.
func (s *Ring) RingVersion(ctx context.Context) (version int64, err error) {
	if err = s.watch().Row(ctx, `SELECT value FROM sequences WHERE name = 'ring'`).Scan(&version); err != nil {
		return 0, fmt.Errorf("reading version of ring: %w", err)
	}
	return version, nil
}

// ChangeRing makes moves and adds keys. A key that is not in the state it is moved
// from, and a second current or next one of a use, are a [problem.Conflict].
func (s *Ring) ChangeRing(ctx context.Context, moves []keys.Move, added []keys.Record) error {
	return s.change(ctx, ringEvent(moves, added), func(t tx) error {
		if err := t.countRing(ctx); err != nil { // first: who changes the ring waits here for each other
			return err
		}
		for _, m := range moves {
			if err := t.moveRingKey(ctx, m); err != nil {
				return err
			}
		}
		bind, err := s.binder(ctx, t)
		if err != nil {
			return err
		}
		for _, r := range added {
			if err := t.addRingKey(ctx, r, bind(r.Kid)); err != nil {
				return err
			}
		}
		return nil
	})
}

func (t tx) countRing(ctx context.Context) error {
	if err := t.Later(ctx, `UPDATE sequences SET value = value + 1 WHERE name = 'ring'`); err != nil {
		return fmt.Errorf("counting change of ring: %w", err)
	}
	return nil
}

func (t tx) moveRingKey(ctx context.Context, m keys.Move) error {
	to := m.To
	res, err := t.Exec(ctx, `UPDATE ring SET state = $3, sealed = $4, activated = $5, retired = $6 WHERE kid = $1 AND state = $2`,
		to.Kid, m.From, to.State, to.Sealed, micros(to.Activated), micros(to.Retired))
	if isUnique(err) {
		return ringConflict()
	}
	if err != nil {
		return fmt.Errorf("moving ring key: %w", err)
	}
	if n, err := res.RowsAffected(); err != nil || n == 1 {
		return err
	}
	return ringConflict()
}

func (t tx) addRingKey(ctx context.Context, r keys.Record, bound string) error {
	_, err := t.Exec(ctx, `INSERT INTO ring (kid, use, state, sealed, created, activated, retired, bound) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
		r.Kid, r.Use, r.State, r.Sealed, micros(r.Created), micros(r.Activated), micros(r.Retired), bound)
	if isUnique(err) {
		return ringConflict()
	}
	if err != nil {
		return fmt.Errorf("inserting ring key: %w", err)
	}
	return nil
}

func ringConflict() error {
	return problem.New(problem.Conflict, "ring_changed", "another node has just changed the key ring; look again")
}

// SweepRing deletes the keys that were retired before a moment.
func (s *Ring) SweepRing(ctx context.Context, before time.Time) error {
	return s.change(ctx, audit.Of("ring.swept", "", "ring", "").With("before", date(before)), func(t tx) error {
		if err := t.countRing(ctx); err != nil {
			return err
		}
		if err := t.Later(ctx, `DELETE FROM ring WHERE state = 'retired' AND retired < $1`, micros(before)); err != nil {
			return fmt.Errorf("sweeping ring: %w", err)
		}
		return nil
	})
}
