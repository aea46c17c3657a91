package limit

import (
	"net/netip"
	"sync"
)

// A Connections counts open connections of strangers to this process. Each network has a share, so that
// one alone cannot keep out all others.
type Connections struct {
	Most       int // in all
	PerNetwork int // of one network, see [RangeOf]

	mu       sync.Mutex
	all      int
	networks map[netip.Prefix]int
}

// Add counts a connection. It returns false, and counts nothing, if there are too many.
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

// Remove ends the counting of a connection that was added.
func (c *Connections) Remove(from netip.Addr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := RangeOf(from)
	c.all--
	if c.networks[n]--; c.networks[n] == 0 {
		delete(c.networks, n)
	}
}

// Networks returns how many networks have connections.
func (c *Connections) Networks() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.networks)
}
