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
	total    int
	networks map[netip.Prefix]int
}

// Add counts a connection from an address. It returns false, and does not count the connection, if
// there are too many.
func (c *Connections) Add(from netip.Addr) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	network := RangeOf(from)
	if c.total >= c.Most || c.networks[network] >= c.PerNetwork {
		return false
	}
	if c.networks == nil {
		c.networks = make(map[netip.Prefix]int)
	}
	c.total++
	c.networks[network]++
	return true
}

// Remove stops counting a connection that was added.
func (c *Connections) Remove(from netip.Addr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	network := RangeOf(from)
	c.total--
	c.networks[network]--
	if c.networks[network] == 0 {
		delete(c.networks, network)
	}
}

// Networks returns how many networks have open connections.
func (c *Connections) Networks() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.networks)
}
