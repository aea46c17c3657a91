package session

import (
	"maps"
	"sync"
	"time"
)

// A Rate says how often something may happen: Burst times at once, and one time
// more after each Every (the generic cell rate algorithm, GCRA: ITU-T I.371). In
// any span of time it happens at most Burst + span/Every times.
type Rate struct {
	Burst int
	Every time.Duration
}

// next returns the moment at which everything is there again once n more are taken of
// what is all there at full, and how long to wait where that is too many.
func (r Rate) next(now, full time.Time, n int) (next time.Time, wait time.Duration) {
	if full.Before(now) {
		full = now
	}
	next = full.Add(r.Cost(n))
	if n > 0 {
		wait = max(0, next.Sub(now)-r.Slack())
	}
	return next, wait
}

// Cost is how long it takes until n are there again.
func (r Rate) Cost(n int) time.Duration { return time.Duration(n) * r.Every }

// Slack is how long it takes until all are there again, once all were taken.
func (r Rate) Slack() time.Duration { return r.Cost(r.Burst) }

// A Meter counts as [Store.Allow] does, in this process alone: what is left where
// there is no store to ask. The zero value is ready.
type Meter struct {
	Now  func() time.Time // nil means time.Now
	mu   sync.Mutex
	full map[Key]time.Time // when a key has everything again
}

// metered bounds a Meter: of more keys some are forgotten.
const metered = 50_000

// Allow takes n of a key's rate, see [Store.Allow].
func (m *Meter) Allow(key Key, rate Rate, n int) (wait time.Duration) {
	now := time.Now
	if m.Now != nil {
		now = m.Now
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	at := now()
	next, wait := rate.next(at, m.full[key], n)
	switch {
	case wait > 0:
		return wait
	case !next.After(at):
		delete(m.full, key)
		return 0
	case m.full == nil:
		m.full = make(map[Key]time.Time)
	case len(m.full) >= metered:
		m.forget(at)
	}
	m.full[key] = next
	return 0
}

// forget makes room: what is over goes, and where that is little, some of the rest.
func (m *Meter) forget(now time.Time) {
	maps.DeleteFunc(m.full, func(_ Key, full time.Time) bool { return !full.After(now) })
	for k := range m.full {
		if len(m.full) <= metered*9/10 {
			return
		}
		delete(m.full, k)
	}
}
