package failover

import (
	"context"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

// Put sets the value of a key.
func (s *Store) Put(ctx context.Context, key session.Key, value []byte, ttl time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.recordLifetime(ttl)

	if era, up := s.up(); up {
		err := s.primary.Put(ctx, key, value, ttl)
		if s.recordResult(ctx, era, err) {
			if err != nil {
				return err
			}
			return s.dropKept(ctx, key)
		}
	}

	s.linger(ttl)
	return s.recordFallback(s.fallback.Put(ctx, key, value, ttl))
}

// Get returns the value of a key.
func (s *Store) Get(ctx context.Context, key session.Key) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}

	era, up := s.up()
	fallbackFirst := s.asksFallbackFirst(up)
	if fallbackFirst {
		value, found, err := s.getKept(ctx, key)
		if found || err != nil || !up {
			return value, orAbsent(key, found, err)
		}
	}

	value, err := s.primary.Get(ctx, key)
	answered := s.recordResult(ctx, era, err)
	if answered && (fallbackFirst || !isAbsent(err)) {
		return value, err
	}

	if !fallbackFirst {
		value, found, err := s.getKept(ctx, key)
		if found || err != nil || answered {
			return value, orAbsent(key, found, err)
		}
	}

	// The primary failed, and the fallback does not have the entry. If the failure was brief, the
	// primary may have it.
	if current, _ := s.up(); current != era {
		return nil, problem.NoSuch(key.Kind)
	}
	value, err = s.primary.Get(ctx, key)
	answered = s.recordResult(ctx, era, err)
	if !answered {
		return nil, problem.NoSuch(key.Kind)
	}
	return value, err
}

// Take returns the value of a key and deletes it.
func (s *Store) Take(ctx context.Context, key session.Key) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}

	era, up := s.up()
	fallbackFirst := s.asksFallbackFirst(up)
	if fallbackFirst {
		value, found, err := s.takeKept(ctx, key)
		if found || err != nil || !up {
			return value, orAbsent(key, found, err)
		}
	}

	value, err := s.primary.Take(ctx, key)
	answered := s.recordResult(ctx, era, err)
	if answered && (fallbackFirst || !isAbsent(err)) {
		return value, err
	}

	if fallbackFirst {
		return nil, problem.NoSuch(key.Kind)
	}
	value, found, err := s.takeKept(ctx, key)
	return value, orAbsent(key, found, err)
}

// Add sets the value of a key that does not exist.
func (s *Store) Add(ctx context.Context, key session.Key, value []byte, ttl time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.recordLifetime(ttl)
	era, up := s.up()
	if !up {
		return s.addKept(ctx, key, value, ttl)
	}

	if s.lingers() {
		_, found, err := s.getKept(ctx, key)
		if found && isAbsent(err) { // it was deleted in the fallback, so the primary's copy is outdated
			return s.addKept(ctx, key, value, ttl)
		}
		if err != nil {
			return err
		}
		if found {
			return errConflict()
		}
	}

	err := s.primary.Add(ctx, key, value, ttl)
	answered := s.recordResult(ctx, era, err)
	if !answered {
		return s.addKept(ctx, key, value, ttl)
	}
	return err
}

// CompareAndSwap replaces the value of a key with new if the value equals old.
func (s *Store) CompareAndSwap(ctx context.Context, key session.Key, old, new []byte, ttl time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.recordLifetime(ttl)

	swapInFallback := func() (found bool, err error) {
		_, found, err = s.getKept(ctx, key)
		if !found || err != nil {
			return found, err
		}
		return true, s.swapKept(ctx, key, old, new, ttl)
	}

	era, up := s.up()
	fallbackFirst := s.asksFallbackFirst(up)
	if fallbackFirst {
		found, err := swapInFallback()
		if found || err != nil || !up {
			return orAbsent(key, found, err)
		}
	}

	err := s.primary.CompareAndSwap(ctx, key, old, new, ttl)
	answered := s.recordResult(ctx, era, err)
	if answered && (fallbackFirst || !isAbsent(err)) {
		return err
	}

	if fallbackFirst {
		return problem.NoSuch(key.Kind)
	}
	found, err := swapInFallback()
	return orAbsent(key, found, err)
}

// Delete removes a key.
func (s *Store) Delete(ctx context.Context, key session.Key) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if era, up := s.up(); up {
		err := s.primary.Delete(ctx, key)
		if s.recordResult(ctx, era, err) {
			if err != nil {
				return err
			}
			return s.dropKept(ctx, key)
		}
	}

	longest := time.Duration(s.longest.Load())
	s.linger(longest)
	return s.recordFallback(s.fallback.Put(ctx, key, deleted, longest))
}

// Incr adds one to a counter.
func (s *Store) Incr(ctx context.Context, key session.Key, ttl time.Duration) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	s.recordLifetime(ttl)

	if era, up := s.up(); up {
		if err := s.dropDeleted(ctx, era, key); err != nil {
			return 0, err
		}
		sum, err := s.primary.Incr(ctx, key, ttl)
		if s.recordResult(ctx, era, err) {
			return sum, err
		}
	}

	// If the counter was deleted, it starts over with its own lifetime.
	_ = s.swapKept(ctx, key, deleted, nil, ttl)
	sum, err := s.fallback.Incr(ctx, key, ttl)
	return sum, s.recordFallback(err)
}

// Allow takes n events from the rate of a key. While the primary is unavailable, each node counts
// in memory, so that a flood of requests during an outage does not reach the fallback.
func (s *Store) Allow(ctx context.Context, key session.Key, rate session.Rate, n int) (time.Duration, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if era, up := s.up(); up {
		wait, err := s.primary.Allow(ctx, key, rate, n)
		if s.recordResult(ctx, era, err) {
			return wait, err
		}
	}
	return s.meter.Allow(key, rate, n), nil
}

// dropDeleted deletes a counter in the primary if the counter was deleted in the fallback during an
// outage.
func (s *Store) dropDeleted(ctx context.Context, era uint64, key session.Key) error {
	if !s.lingers() {
		return nil
	}

	_, found, err := s.getKept(ctx, key)
	isMarked := found && isAbsent(err)
	if !isMarked {
		return err
	}

	err = s.primary.Delete(ctx, key)
	answered := s.recordResult(ctx, era, err)
	if !answered {
		return nil // Incr then uses the fallback, where the counter is marked as deleted
	}
	return s.dropKept(ctx, key)
}

// asksFallbackFirst reports whether to ask the fallback before the primary: while the primary is
// unavailable, or while the fallback may still hold entries from an outage.
func (s *Store) asksFallbackFirst(up bool) bool { return !up || s.lingers() }

// orAbsent returns err if it is not nil. Otherwise it returns problem.NotFound unless the entry was
// found.
func orAbsent(key session.Key, found bool, err error) error {
	if !found && err == nil {
		return problem.NoSuch(key.Kind)
	}
	return err
}
