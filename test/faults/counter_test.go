package faults

import "sync"

// A counter counts what many do, for one who waits for a number.
type counter struct {
	mu   sync.Mutex
	n    int
	more *sync.Cond
}

func newCounter() *counter {
	c := &counter{}
	c.more = sync.NewCond(&c.mu)
	return c
}

func (c *counter) add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	c.more.Broadcast()
}

func (c *counter) await(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.n < n {
		c.more.Wait()
	}
}
