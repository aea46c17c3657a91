package session

import (
	"maps"
	"sync"
	"time"
)

// A Rate limits how often something may happen: Burst times at once, and once more after
// each Every (the generic cell rate algorithm, GCRA: ITU-T I.371). In any span of time it
// happens at most Burst + span/Every times.
type Rate struct {
	Burst int
	Every time.Duration
}

// next takes n events from a key that is fully recovered at the time full. It returns the
// time at which the key will be fully recovered again, or how long to wait if n events are
// too many now.
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

// Cost returns how long it takes to recover n events.
func (r Rate) Cost(n int) time.Duration { return time.Duration(n) * r.Every }

// Slack returns how long it takes to recover all events, once all were taken.
func (r Rate) Slack() time.Duration { return r.Cost(r.Burst) }

// A Meter counts like [Store.Allow], but in this process alone. It serves while no store
// is available. The zero value is ready to use.
type Meter struct {
	Now  func() time.Time // nil means time.Now
	mu   sync.Mutex
	full map[Key]time.Time // when a key is fully recovered
}

// metered is the most keys a Meter keeps. Beyond that, some are forgotten.
const metered = 50_000

// Allow takes n events from a key's rate; see [Store.Allow].
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

// forget makes room: it removes recovered keys, and if those are few, some of the rest.
func (m *Meter) forget(now time.Time) {
	maps.DeleteFunc(m.full, func(_ Key, full time.Time) bool { return !full.After(now) })
	for k := range m.full {
		if len(m.full) <= metered*9/10 {
			return
		}
		delete(m.full, k)
	}
}
