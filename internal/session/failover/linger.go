package failover

import (
	"context"
	"strconv"
	"time"

	"github.com/selvage/selvage/internal/session"
)

// lingerKey is the key of the entry in the fallback that holds the time at which the lingering
// ends.
var lingerKey = session.Key{Kind: "failover", ID: "until"}

// grain is the precision of the time at which the lingering ends. It is coarse, so that the time need
// rarely be written, and the clocks of the nodes may differ slightly.
const grain = time.Minute

// lingers reports whether the fallback may hold entries from an outage.
func (s *Store) lingers() bool {
	until := s.until.Load()
	return until != 0 && time.Now().UnixMicro() < until
}

// remainingLinger returns how much longer the fallback lingers.
func (s *Store) remainingLinger() time.Duration { return time.Until(time.UnixMicro(s.until.Load())) }

// linger ensures that the fallback lingers long enough for a new entry with the given lifetime.
func (s *Store) linger(ttl time.Duration) {
	if s.raiseLinger(time.Now().Add(ttl + grain).Truncate(grain).Add(grain)) {
		s.writeLinger() // if this fails, watchLinger tries again within a second
	}
}

// raiseLinger makes the fallback linger at least until the given time. It reports whether this
// changed anything.
func (s *Store) raiseLinger(until time.Time) bool {
	later := until.UnixMicro()
	for {
		current := s.until.Load()
		if current >= later {
			return false
		}
		if s.until.CompareAndSwap(current, later) {
			return true
		}
	}
}

// watchLinger reads once a second how long other nodes have made the fallback linger, until the
// Store is closed.
func (s *Store) watchLinger() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-s.done.Done():
			return
		case <-tick.C:
			_ = s.readLinger() // the next tick tries again
		}
	}
}

// readLinger reads the end of the lingering from the fallback. If this process knows of a later end,
// readLinger stores that in the fallback.
func (s *Store) readLinger() error {
	ctx, cancel := context.WithTimeout(s.done, time.Second)
	defer cancel()

	value, err := s.fallback.Get(ctx, lingerKey)
	if err != nil && !isAbsent(err) {
		return err
	}

	stored, _ := strconv.ParseInt(string(value), 10, 64)
	s.raiseLinger(time.UnixMicro(stored))
	if s.lingers() && stored < s.until.Load() {
		s.writeLinger()
	}
	return nil
}

func (s *Store) writeLinger() {
	ctx, cancel := context.WithTimeout(s.done, time.Second)
	defer cancel()
	until := s.until.Load()
	_ = s.fallback.Put(ctx, lingerKey, strconv.AppendInt(nil, until, 10), time.Until(time.UnixMicro(until)))
}

// recordLifetime records the lifetime of an entry that is about to be written.
func (s *Store) recordLifetime(ttl time.Duration) {
	for {
		longest := s.longest.Load()
		if int64(ttl) <= longest || s.longest.CompareAndSwap(longest, int64(ttl)) {
			return
		}
	}
}
