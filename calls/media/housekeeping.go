package media

import (
	"time"

	"github.com/selvage/selvage/calls"
)

// housekeepingInterval is the time between two rounds of the engine's housekeeping.
const housekeepingInterval = 500 * time.Millisecond

// runHousekeeping does the housekeeping at each interval until the engine is closed.
func (e *Engine) runHousekeeping() {
	ticker := time.NewTicker(housekeepingInterval)
	defer ticker.Stop()
	for {
		select {
		case <-e.done:
			return
		case now := <-ticker.C:
			e.recoverHousekeeping(now)
		}
	}
}

// recoverHousekeeping does one round of housekeeping, and recovers from a panic.
func (e *Engine) recoverHousekeeping(now time.Time) {
	defer func() { e.handlePanic(nil, recover()) }()
	e.doHousekeeping(now)
}

// doHousekeeping replaces an old certificate. Then, for each leg, it renews the client's consent to
// receive media, and reports clients that were lost, returned or stopped speaking.
func (e *Engine) doHousekeeping(now time.Time) {
	if now.Sub(e.identity.Load().created) > rotation {
		if err := e.rotateCertificate(now); err != nil {
			e.log.Error("rotating the media certificate", "error", err)
		}
	}

	for l, transports := range e.transports() {
		for _, t := range transports {
			if t.port != nil {
				t.keepHeld(now)
			} else {
				t.renewConsent(now)
			}
		}
		lastSeen, path := latestPath(transports, now)
		l.reportPresence(lastSeen, path, now)
		l.reporter.detectPause(now)
	}
}

// latestPath returns when a client was last seen on any of its transports, and the path of the
// latest transport. A transport without a path counts only while it is new. If no transport counts,
// lastSeen is zero.
func latestPath(transports []*transport, now time.Time) (lastSeen time.Time, latest *path) {
	var latestAt int64
	for _, t := range transports {
		p, at := t.path.Load(), t.lastHeard.Load()
		if p == nil && now.Sub(t.created) >= calls.LostAfter {
			continue
		}
		if at > latestAt {
			latestAt, lastSeen, latest = at, stamped(at), p
		}
	}
	return lastSeen, latest
}

// transports returns all legs with the transports of their live sections.
func (e *Engine) transports() map[*leg][]*transport {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := make(map[*leg][]*transport, len(e.legs))
	for l := range e.legs {
		all[l] = nil
		for _, s := range l.sections {
			if s.live() {
				all[l] = append(all[l], s.transport)
			}
		}
	}
	return all
}
