package media

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// maxProven is how many addresses may belong to a transport at the same time. A client has one for
// each of its networks, and twice as many while it moves to other networks.
const maxProven = 8

// claimHold is how long an address still belongs to a client that has become silent there. Only
// then can another client claim it.
const claimHold = 10 * time.Second

// A table finds the transport that a packet belongs to. STUN packets are matched by our user name
// fragment or by the id of our check, and all others by an address that answered such a check.
type table struct {
	mu        sync.RWMutex
	byName    map[string]*transport
	byAddress map[netip.AddrPort]*claim

	checksMu sync.Mutex // no other lock is taken while it is held
	checks   map[transaction]*transport
}

// A claim says which transport owns an address.
type claim struct {
	owner *transport
	heard atomic.Int64 // when the owner last sent STUN from there, in ns since 1970
}

func (t *table) init() {
	t.byName = map[string]*transport{}
	t.byAddress = map[netip.AddrPort]*claim{}
	t.checks = map[transaction]*transport{}
}

// name returns the transport that has the user name fragment ufrag, or nil.
func (t *table) name(ufrag []byte) *transport {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.byName[string(ufrag)]
}

// address returns the transport whose client proved that it uses the address a, or nil.
func (t *table) address(a netip.AddrPort) *transport {
	t.mu.RLock()
	found := t.byAddress[a]
	t.mu.RUnlock()
	if found == nil {
		return nil
	}
	return found.owner
}

// hear records that a client sent STUN from an address, and reports whether its transport owns the
// address.
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

// check returns the transport that awaits the answer to the check id, or nil.
func (t *table) check(id transaction) *transport {
	t.checksMu.Lock()
	defer t.checksMu.Unlock()
	return t.checks[id]
}

// addCheck registers a check whose answer the transport awaits.
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

// addName registers a user name fragment of a transport.
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

// prove makes a transport the owner of an address. It returns false if another client owns the
// address and was heard from there within claimHold. If the transport then has too many addresses,
// its oldest one is forgotten.
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

// disown forgets an address if owner owns it. The caller holds mu.
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
