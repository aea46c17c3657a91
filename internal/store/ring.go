package store

import (
	"context"
	"fmt"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/keys"
)

var _ keys.Store = (*Store)(nil)

// RingKeys gives all keys of the ring, oldest first.
func (s *Store) RingKeys(ctx context.Context) ([]keys.Record, error) {
	return gather(ctx, s.read(), "reading ring", scanRingKey, `SELECT kid, use, state, sealed, created, retired FROM ring ORDER BY kid`)
}

func scanRingKey(row scanner) (r keys.Record, err error) {
	var created, retired int64
	err = row.Scan(&r.Kid, &r.Use, &r.State, &r.Sealed, &created, &retired)
	r.Created, r.Retired = moment(created), moment(retired)
	return r, err
}

// AddRingKey inserts a key. A second current or next one of a use is a
// [problem.Conflict].
func (s *Store) AddRingKey(ctx context.Context, r keys.Record) error {
	return s.change(ctx, func(t tx) error {
		_, err := t.Exec(ctx, `INSERT INTO ring (kid, use, state, sealed, created, retired) VALUES ($1, $2, $3, $4, $5, $6)`,
			r.Kid, r.Use, r.State, r.Sealed, micros(r.Created), micros(r.Retired))
		if isUnique(err) {
			return problem.New(problem.Conflict, "key_exists", "there is a %s key for %s", r.State, r.Use)
		}
		if err != nil {
			return fmt.Errorf("inserting ring key: %w", err)
		}
		return nil
	})
}
