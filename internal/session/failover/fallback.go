package failover

import (
	"context"
	"errors"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

// deleted is the value of an entry in the fallback that was deleted or taken while the primary was
// unavailable, or while the primary might have had another copy. No other entry has this value.
var deleted = []byte("\x00selvage: deleted 5Zb1qB0mUuWZ2vJY\x00")

func errConflict() error {
	return problem.New(problem.Conflict, "conflict", "the entry exists")
}

// getKept returns the value of a key in the fallback. If found is true and err is
// problem.NotFound, the entry is marked as deleted, even if the primary still has it.
func (s *Store) getKept(ctx context.Context, key session.Key) (value []byte, found bool, err error) {
	value, err = s.fallback.Get(ctx, key)
	switch s.recordFallback(err); {
	case isAbsent(err):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	case string(value) == string(deleted):
		return nil, true, problem.NoSuch(key.Kind)
	}
	return value, true, nil
}

// takeKept takes an entry from the fallback and marks it as deleted there.
func (s *Store) takeKept(ctx context.Context, key session.Key) (value []byte, found bool, err error) {
	for {
		value, found, err = s.getKept(ctx, key)
		if !found || err != nil {
			return nil, found, err
		}

		err = s.swapKept(ctx, key, value, deleted, time.Duration(s.longest.Load()))
		if err == nil {
			return value, true, nil
		}
		if !isAbsent(err) && !errors.Is(err, problem.Conflict) {
			return nil, false, err
		}
	}
}

// addKept adds an entry to the fallback, unless the fallback already has it. An entry that is
// marked as deleted counts as absent.
func (s *Store) addKept(ctx context.Context, key session.Key, value []byte, ttl time.Duration) error {
	for {
		s.linger(ttl)
		err := s.recordFallback(s.fallback.Add(ctx, key, value, ttl))
		if !errors.Is(err, problem.Conflict) {
			return err
		}

		err = s.swapKept(ctx, key, deleted, value, ttl)
		if !isAbsent(err) {
			return err
		}
		// The entry has disappeared since Add found it.
	}
}

// swapKept replaces the value of an entry in the fallback. If the primary is available and the
// fallback already lingers, swapKept does not extend the lingering. Otherwise a caller that keeps
// swapping an entry would make the fallback linger forever.
func (s *Store) swapKept(ctx context.Context, key session.Key, old, new []byte, ttl time.Duration) error {
	if _, up := s.up(); up && s.lingers() {
		ttl = min(ttl, max(s.remainingLinger(), time.Millisecond))
	} else {
		s.linger(ttl)
	}
	return s.recordFallback(s.fallback.CompareAndSwap(ctx, key, old, new, ttl))
}

// dropKept removes an entry from the fallback, because the primary has a newer one.
func (s *Store) dropKept(ctx context.Context, key session.Key) error {
	if !s.lingers() {
		return nil
	}
	return s.recordFallback(s.fallback.Delete(ctx, key))
}
