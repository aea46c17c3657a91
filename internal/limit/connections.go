package limit

import (
	"net/netip"
	"sync"
)

// A Connections counts this process's open connections from unauthenticated clients. Each network
// has its own limit, so that one network cannot lock out the others.
type Connections struct {
	Most       int // maximum in total
	PerNetwork int // maximum from one network, see [RangeOf]

	mu       sync.Mutex
	all      int
	networks map[netip.Prefix]int
}

// Add counts a connection from an address. It returns false, and does not count the connection, if
// there are too many.
func (c *Connections) Add(from netip.Addr) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := RangeOf(from)
	if c.all >= c.Most || c.networks[n] >= c.PerNetwork {
		return false
	}
	if c.networks == nil {
		c.networks = map[netip.Prefix]int{}
	}
	c.all++
	c.networks[n]++
	return true
}

// Remove stops counting a connection that was added.
func (c *Connections) Remove(from netip.Addr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := RangeOf(from)
	c.all--
	if c.networks[n]--; c.networks[n] == 0 {
		delete(c.networks, n)
	}
}

// Networks returns how many networks have open connections.
func (c *Connections) Networks() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.networks)
}
