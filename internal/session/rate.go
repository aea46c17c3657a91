package session

import (
	"maps"
	"sync"
	"time"
)

// A Rate limits how often an event may happen: up to Burst times in quick succession, and once more
// after each interval of length Every. In any period, there are at most Burst + period/Every
// events. This is the generic cell rate algorithm (GCRA: ITU-T I.371).
type Rate struct {
	Burst int
	Every time.Duration
}

// next takes n events from a key. The parameter full is the time at which the key will have
// recovered all events. The function returns the new value of full, or how long to wait if n events
// are not available yet.
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

// Cost returns how long recovering n events takes.
func (r Rate) Cost(n int) time.Duration { return time.Duration(n) * r.Every }

// Slack returns how long recovering all events takes after all were taken.
func (r Rate) Slack() time.Duration { return r.Cost(r.Burst) }

// A Meter counts like [Store.Allow], but only in this process. It is used while no store is
// available. The zero value is ready to use.
type Meter struct {
	Now  func() time.Time // nil means time.Now
	mu   sync.Mutex
	full map[Key]time.Time // when each key will have recovered all events
}

// maxMetered is the maximum number of keys that a Meter keeps. Before it adds another one, it deletes
// some.
const maxMetered = 50_000

// Allow takes n events from a key's rate; see [Store.Allow].
func (m *Meter) Allow(key Key, rate Rate, n int) (wait time.Duration) {
	now := time.Now
	if m.Now != nil {
		now = m.Now
	}

	m.mu.Lock()
	defer m.mu.Unlock()

	at, full := now(), m.full[key]
	if most := at.Add(rate.Slack()); full.After(most) { // the rate was changed, so n events are available
		full = most.Add(-rate.Cost(n))
	}

	next, wait := rate.next(at, full, n)
	switch {
	case wait > 0:
		return wait
	case !next.After(at):
		delete(m.full, key)
		return 0
	case m.full == nil:
		m.full = make(map[Key]time.Time)
	case len(m.full) >= maxMetered:
		m.forget(at)
	}
	m.full[key] = next
	return 0
}

// forget makes room for more keys. It deletes keys that have recovered all events. If there are too
// few of these, it also deletes some others.
func (m *Meter) forget(now time.Time) {
	maps.DeleteFunc(m.full, func(_ Key, full time.Time) bool { return !full.After(now) })
	for k := range m.full {
		if len(m.full) <= maxMetered*9/10 {
			return
		}
		delete(m.full, k)
	}
}
