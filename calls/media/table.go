package media

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// maxProven is how many addresses may belong to a transport at once. A client has as many
// as it has networks, times two while it moves from one to another.
const maxProven = 8

// claimHold is how long an address belongs to a client that is silent there. Others cannot have it
// before.
const claimHold = 10 * time.Second

// A table finds the transport of a packet: STUN by our user name fragment or by the id of our check,
// all else by an address that answered such a check.
type table struct {
	mu        sync.RWMutex
	byName    map[string]*transport
	byAddress map[netip.AddrPort]*claim

	checksMu sync.Mutex // no other lock is taken while it is held
	checks   map[transaction]*transport
}

// A claim is whose an address is.
type claim struct {
	owner *transport
	heard atomic.Int64 // when the owner last sent STUN from there, in ns since 1970
}

func (t *table) init() {
	t.byName = map[string]*transport{}
	t.byAddress = map[netip.AddrPort]*claim{}
	t.checks = map[transaction]*transport{}
}

// name returns the transport with a user name fragment, or nil.
func (t *table) name(ufrag []byte) *transport {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.byName[string(ufrag)]
}

// address returns the transport whose client proved itself from an address, or nil.
func (t *table) address(a netip.AddrPort) *transport {
	t.mu.RLock()
	found := t.byAddress[a]
	t.mu.RUnlock()
	if found == nil {
		return nil
	}
	return found.owner
}

// hear takes note that a client was heard from an address, and reports whether the address is its.
func (t *table) hear(a netip.AddrPort, by *transport, now time.Time) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	c := t.byAddress[a]
	if c == nil || c.owner != by {
		return false
	}
	c.heard.Store(now.UnixNano())
	return true
}

// check returns the transport that awaits an answer to a check, or nil.
func (t *table) check(id transaction) *transport {
	t.checksMu.Lock()
	defer t.checksMu.Unlock()
	return t.checks[id]
}

// addCheck makes a transport await an answer.
func (t *table) addCheck(id transaction, to *transport) {
	t.checksMu.Lock()
	defer t.checksMu.Unlock()
	t.checks[id] = to
}

// removeCheck forgets a check.
func (t *table) removeCheck(id transaction) {
	t.checksMu.Lock()
	defer t.checksMu.Unlock()
	delete(t.checks, id)
}

// addName makes a transport known by a user name fragment.
func (t *table) addName(ufrag string, to *transport) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byName[ufrag] = to
}

// removeName forgets a user name fragment.
func (t *table) removeName(ufrag string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byName, ufrag)
}

// prove makes an address belong to a transport. It reports false if the address is another client's,
// which was heard from there within claimHold. The oldest address of a transport that has too many
// is forgotten.
func (t *table) prove(a netip.AddrPort, to *transport, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.byAddress[a]
	switch {
	case to.forgotten:
		return false
	case c != nil && c.owner == to:
		c.heard.Store(now.UnixNano())
		return true
	case c != nil && now.UnixNano()-c.heard.Load() < int64(claimHold):
		return false
	}

	if len(to.proven) == maxProven {
		t.disown(to.proven[0], to)
		to.proven = to.proven[1:]
	}
	to.proven = append(to.proven, a)
	c = &claim{owner: to}
	c.heard.Store(now.UnixNano())
	t.byAddress[a] = c
	return true
}

// disown forgets an address if it belongs to a transport. The caller holds mu.
func (t *table) disown(a netip.AddrPort, owner *transport) {
	if c := t.byAddress[a]; c != nil && c.owner == owner {
		delete(t.byAddress, a)
	}
}

// forget removes a transport and all its addresses.
func (t *table) forget(gone *transport) {
	t.mu.Lock()
	defer t.mu.Unlock()
	gone.forgotten = true
	for _, a := range gone.proven {
		t.disown(a, gone)
	}
	gone.proven = nil
	for _, c := range gone.credentials() {
		delete(t.byName, c.ufrag)
	}
}
