package media

import (
	"net/netip"
	"sync"
)

const (
	maxUnproven   = 256 // TCP connections that have not proved themselves
	maxPerNetwork = 32  // of them from one network
)

// An unproven counts the TCP connections that belong to no section yet. Each network has a share,
// so that one alone cannot keep out all others.
type unproven struct {
	mu       sync.Mutex
	all      int
	networks map[netip.Prefix]int
}

// add counts a connection, and reports false if there are too many.
func (u *unproven) add(a netip.Addr) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	n := networkOf(a)
	if u.all == maxUnproven || u.networks[n] == maxPerNetwork {
		return false
	}
	if u.networks == nil {
		u.networks = map[netip.Prefix]int{}
	}
	u.all++
	u.networks[n]++
	return true
}

// remove ends the counting of a connection.
func (u *unproven) remove(a netip.Addr) {
	u.mu.Lock()
	defer u.mu.Unlock()
	n := networkOf(a)
	u.all--
	if u.networks[n]--; u.networks[n] == 0 {
		delete(u.networks, n)
	}
}

// networkOf returns the block of addresses that one customer of a provider may own, as package
// limit counts them: a /24 of IPv4 or a /48 of IPv6.
func networkOf(a netip.Addr) netip.Prefix {
	bits := 48
	if a.Is4() {
		bits = 24
	}
	p, _ := a.Prefix(bits) // fails only for no address, which is a network too
	return p
}
