package failover

import (
	"context"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

// This file contains the operations of a Store. They follow these rules; the package comment gives
// the reasons.
//
//   - An era is a period during which the primary is always in use (up), or never. Each operation reads
//     the era first. A failure counts against the primary only if the era has not changed since then.
//   - The primary answered if it returned any result that session.Store defines. NotFound and
//     Conflict are answers, too. Any other error is a failure, unless the caller's context is done.
//   - The functions named …Kept work on the fallback, which keeps entries from outages.
//   - A mark is an entry of the fallback whose value is the variable deleted. It means that the key
//     was deleted or taken, even if the primary still has it. If getKept finds a mark, found is
//     true and err is problem.NotFound.
//   - While the fallback lingers, it may hold entries that are newer than those of the primary, so
//     the fallback is asked first. At other times, it is asked only if the primary failed or does not
//     have the entry.
//   - An entry that is written to the fallback expires before the lingering ends: linger extends
//     the lingering, or swapKept shortens the lifetime. A mark lives for s.longest, the longest
//     lifetime of any entry, so that it outlives the primary's copy.
//   - An error of the fallback is returned to the caller. A failure of the primary is not: if the
//     fallback does not have the entry either, the error is problem.NotFound.

// Put sets the value of a key in the primary, and removes the copy in the fallback. If the primary
// does not answer, Put sets the value in the fallback instead.
func (s *Store) Put(ctx context.Context, key session.Key, value []byte, ttl time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.recordLifetime(ttl)

	if era, up := s.up(); up {
		err := s.primary.Put(ctx, key, value, ttl)
		answered := s.recordResult(ctx, era, err)
		if answered {
			if err != nil {
				return err
			}
			return s.dropKept(ctx, key)
		}
	}

	s.linger(ttl)
	return s.recordFallback(s.fallback.Put(ctx, key, value, ttl))
}

// Get returns the value of a key. Unlike the operations that change entries, it asks the primary a second
// time after a failure.
func (s *Store) Get(ctx context.Context, key session.Key) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}

	era, up := s.up()
	fallbackFirst := s.asksFallbackFirst(up)
	if fallbackFirst {
		kept, found, keptErr := s.getKept(ctx, key)
		isLast := !up
		if fallbackDecides(found, keptErr, isLast) {
			return kept, orAbsent(key, found, keptErr)
		}
	}

	value, err := s.primary.Get(ctx, key)
	answered := s.recordResult(ctx, era, err)
	if primaryDecides(answered, err, fallbackFirst) {
		return value, err
	}

	if !fallbackFirst {
		kept, found, keptErr := s.getKept(ctx, key)
		isLast := answered // if the primary failed, it is asked again
		if fallbackDecides(found, keptErr, isLast) {
			return kept, orAbsent(key, found, keptErr)
		}
	}

	// The primary failed, and the fallback does not have the entry. If the failure was brief, the
	// primary may have it.
	current, _ := s.up()
	if current != era {
		return nil, problem.NoSuch(key.Kind)
	}
	value, err = s.primary.Get(ctx, key)
	answered = s.recordResult(ctx, era, err)
	if !answered {
		return nil, problem.NoSuch(key.Kind)
	}
	return value, err
}

// Take returns the value of a key and deletes it. If the fallback has the entry, Take marks it as
// deleted there. If the primary fails, Take does not ask it again, because it may have deleted the entry.
func (s *Store) Take(ctx context.Context, key session.Key) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}

	era, up := s.up()
	fallbackFirst := s.asksFallbackFirst(up)
	if fallbackFirst {
		kept, found, keptErr := s.takeKept(ctx, key)
		isLast := !up
		if fallbackDecides(found, keptErr, isLast) {
			return kept, orAbsent(key, found, keptErr)
		}
	}

	value, err := s.primary.Take(ctx, key)
	answered := s.recordResult(ctx, era, err)
	if primaryDecides(answered, err, fallbackFirst) {
		return value, err
	}

	if fallbackFirst {
		return nil, problem.NoSuch(key.Kind)
	}
	kept, found, keptErr := s.takeKept(ctx, key)
	return kept, orAbsent(key, found, keptErr)
}

// Add sets the value of a key that does not exist. If the key is marked as deleted in the fallback,
// or the primary does not answer, Add sets the value in the fallback.
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
		_, found, keptErr := s.getKept(ctx, key)
		if isMark(found, keptErr) { // the primary's copy is outdated
			return s.addKept(ctx, key, value, ttl)
		}
		if keptErr != nil {
			return keptErr
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

// CompareAndSwap replaces the value of a key with new if the value equals old. If the fallback
// lingers and has a copy, only this copy is replaced.
func (s *Store) CompareAndSwap(ctx context.Context, key session.Key, old, new []byte, ttl time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.recordLifetime(ttl)

	era, up := s.up()
	fallbackFirst := s.asksFallbackFirst(up)
	if fallbackFirst {
		found, keptErr := s.swapIfKept(ctx, key, old, new, ttl)
		isLast := !up
		if fallbackDecides(found, keptErr, isLast) {
			return orAbsent(key, found, keptErr)
		}
	}

	err := s.primary.CompareAndSwap(ctx, key, old, new, ttl)
	answered := s.recordResult(ctx, era, err)
	if primaryDecides(answered, err, fallbackFirst) {
		return err
	}

	if fallbackFirst {
		return problem.NoSuch(key.Kind)
	}
	found, keptErr := s.swapIfKept(ctx, key, old, new, ttl)
	return orAbsent(key, found, keptErr)
}

// swapIfKept replaces the value of a key in the fallback, if the fallback has an entry that is not
// marked as deleted.
func (s *Store) swapIfKept(
	ctx context.Context, key session.Key, old, new []byte, ttl time.Duration,
) (found bool, err error) {
	_, found, err = s.getKept(ctx, key)
	if !found || err != nil {
		return found, err
	}
	return true, s.swapKept(ctx, key, old, new, ttl)
}

// Delete removes a key from the primary, and its copy from the fallback. If the primary does not
// answer, Delete marks the key as deleted in the fallback, because the primary may have a copy.
func (s *Store) Delete(ctx context.Context, key session.Key) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if era, up := s.up(); up {
		err := s.primary.Delete(ctx, key)
		answered := s.recordResult(ctx, era, err)
		if answered {
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

// Incr adds one to a counter. While the primary is unavailable, the fallback has its own counter.
// Afterwards, the primary's counter continues.
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
		answered := s.recordResult(ctx, era, err)
		if answered {
			return sum, err
		}
	}

	// If the counter is marked as deleted, it starts over with its own lifetime. Without a mark,
	// swapKept changes nothing and fails. If it fails because the fallback is unavailable, the error
	// can be ignored, because Incr then fails, too.
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
		answered := s.recordResult(ctx, era, err)
		if answered {
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
	if !isMark(found, err) {
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

// fallbackDecides reports whether the result of the fallback is the result of the operation. This
// is the case if the fallback has an entry or a mark, or if it failed, because the primary's copy
// could then be outdated. isLast means that the primary is not asked afterwards.
func fallbackDecides(found bool, err error, isLast bool) bool {
	return found || err != nil || isLast
}

// primaryDecides reports whether the result of the primary is the result of the operation. This is
// the case if the primary answered, unless it does not have the entry and the fallback has not been
// asked yet.
func primaryDecides(answered bool, err error, fallbackWasAsked bool) bool {
	if !answered {
		return false
	}
	return fallbackWasAsked || !isAbsent(err)
}

// isMark reports whether a result of getKept means that the key is marked as deleted.
func isMark(found bool, err error) bool { return found && isAbsent(err) }

// orAbsent returns err if it is not nil. Otherwise it returns problem.NotFound unless the entry was
// found.
func orAbsent(key session.Key, found bool, err error) error {
	if !found && err == nil {
		return problem.NoSuch(key.Kind)
	}
	return err
}
