package media

import (
	"net/netip"
	"sync"
)

// maxProven is how many addresses may belong to a transport at once. A client has as many
// as it has networks, times two while it moves from one to another.
const maxProven = 8

// A table finds the transport of a packet: STUN by our user name fragment, all else by the
// address from which the client proved itself.
type table struct {
	mu        sync.RWMutex
	byName    map[string]*transport
	byAddress map[netip.AddrPort]*transport
}

func (t *table) init() {
	t.byName = map[string]*transport{}
	t.byAddress = map[netip.AddrPort]*transport{}
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
	return found
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

// prove makes an address belong to a transport. The last client that proves an address has
// it; the oldest address of a transport that has too many is forgotten.
func (t *table) prove(a netip.AddrPort, to *transport) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byAddress[a] == to || to.forgotten {
		return
	}
	if len(to.proven) == maxProven {
		t.disown(to.proven[0], to)
		to.proven = to.proven[1:]
	}
	to.proven = append(to.proven, a)
	t.byAddress[a] = to
}

// disown forgets an address if it belongs to a transport. The caller holds mu.
func (t *table) disown(a netip.AddrPort, owner *transport) {
	if t.byAddress[a] == owner {
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
