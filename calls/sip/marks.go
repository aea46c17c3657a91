package sip

import (
	"net/netip"
	"sync"
	"time"
)

// A blockKey identifies blocked senders in a network, whose credentials are not checked. These are
// the senders that use a certain username, or that call the SIP address with the id in username. If
// username is "", they are all unregistered senders in the network.
type blockKey struct {
	network  netip.Prefix
	username string
}

// A silentKey identifies an address of a gateway that does not answer. It contains the gateway, because
// projects must not affect each other's calls.
type silentKey struct {
	gateway string // its id
	at      netip.AddrPort
}

// maxMarks is the maximum number of entries in marks.
const maxMarks = 50_000

// marks holds what is marked, and until when. The zero value is ready to use.
type marks[K comparable] struct {
	mu    sync.Mutex
	until map[K]time.Time
}

func (m *marks[K]) has(k K, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return now.Before(m.until[k])
}

// add marks k for the given duration from now on, unless too many other keys are marked. It reports
// whether k was marked before.
func (m *marks[K]) add(k K, now time.Time, duration time.Duration) (wasMarked bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.until == nil {
		m.until = make(map[K]time.Time)
	}
	before, has := m.until[k]
	if has || len(m.until) < maxMarks {
		m.until[k] = now.Add(duration)
	}
	return now.Before(before)
}

func (m *marks[K]) remove(k K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.until, k)
}

func (m *marks[K]) sweep(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for k, until := range m.until {
		if now.After(until) {
			delete(m.until, k)
		}
	}
}
