package media

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// maxProven is the maximum number of addresses of one transport. A client has one address for each
// of its networks, and twice as many while it moves to other networks.
const maxProven = 8

// claimHold is how long an address still belongs to a client that has become silent there. After
// this time, another client can claim it.
const claimHold = 10 * time.Second

// A table finds the transport that a packet belongs to. It finds STUN packets by our username
// fragment or by the id of our check. It finds all other packets by their source address, which
// must have answered such a check.
type table struct {
	mu        sync.RWMutex
	byName    map[string]*transport
	byAddress map[netip.AddrPort]*claim

	checksMu sync.Mutex // no other lock is taken while this lock is held
	checks   map[transaction]*transport
}

// A claim records which transport owns an address.
type claim struct {
	owner     *transport
	lastHeard atomic.Int64 // when the owner last sent STUN from there; see stamp
}

func (t *table) init() {
	t.byName = map[string]*transport{}
	t.byAddress = map[netip.AddrPort]*claim{}
	t.checks = map[transaction]*transport{}
}

// findByName returns the transport that has the username fragment ufrag, or nil.
func (t *table) findByName(ufrag []byte) *transport {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.byName[string(ufrag)]
}

// findByAddress returns the transport whose client proved that it uses the address a, or nil.
func (t *table) findByAddress(a netip.AddrPort) *transport {
	t.mu.RLock()
	found := t.byAddress[a]
	t.mu.RUnlock()
	if found == nil {
		return nil
	}
	return found.owner
}

// refreshClaim records that a client sent STUN from an address, and reports whether its transport
// owns the address.
func (t *table) refreshClaim(a netip.AddrPort, by *transport, now time.Time) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	c := t.byAddress[a]
	if c == nil || c.owner != by {
		return false
	}
	c.lastHeard.Store(stamp(now))
	return true
}

// findByCheck returns the transport that awaits the answer to the check id, or nil.
func (t *table) findByCheck(id transaction) *transport {
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

// addName registers a username fragment of a transport.
func (t *table) addName(ufrag string, to *transport) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byName[ufrag] = to
}

// removeName forgets a username fragment.
func (t *table) removeName(ufrag string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byName, ufrag)
}

// claimAddress makes a transport the owner of an address. It returns false if the transport was
// removed, or if another client owns the address and was heard there within claimHold. If the
// transport then has too many addresses, claimAddress forgets the oldest.
func (t *table) claimAddress(a netip.AddrPort, to *transport, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.byAddress[a]
	switch {
	case to.removed:
		return false
	case c != nil && c.owner == to:
		c.lastHeard.Store(stamp(now))
		return true
	case c != nil && stamp(now)-c.lastHeard.Load() < int64(claimHold):
		return false
	}

	if len(to.addresses) == maxProven {
		t.releaseAddress(to.addresses[0], to)
		to.addresses = to.addresses[1:]
	}
	to.addresses = append(to.addresses, a)
	c = &claim{owner: to}
	c.lastHeard.Store(stamp(now))
	t.byAddress[a] = c
	return true
}

// releaseAddress forgets an address if owner owns it. The caller holds mu.
func (t *table) releaseAddress(a netip.AddrPort, owner *transport) {
	if c := t.byAddress[a]; c != nil && c.owner == owner {
		delete(t.byAddress, a)
	}
}

// remove removes a transport and all its addresses.
func (t *table) remove(gone *transport) {
	t.mu.Lock()
	defer t.mu.Unlock()
	gone.removed = true
	for _, a := range gone.addresses {
		t.releaseAddress(a, gone)
	}
	gone.addresses = nil
	for _, c := range gone.credentials() {
		delete(t.byName, c.ufrag)
	}
}
