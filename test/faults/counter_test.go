package faults

import (
	"sync"

	"github.com/selvage/selvage/test/harness"
)

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

// isGone reports whether a server was killed. Before that it may refuse something, on a machine
// that has much to do; who gave up then would be missed by who waits for a number.
func isGone(p *harness.Project) bool {
	_, err := p.Try("GET", "/robots.txt")
	return err != nil
}

func (c *counter) await(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.n < n {
		c.more.Wait()
	}
}
