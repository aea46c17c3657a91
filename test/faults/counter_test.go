package faults

import (
	"sync"

	"github.com/selvage/selvage/test/harness"
)

// A counter counts the acknowledged operations of many workers, so that a test can wait for a
// certain number.
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

// isGone reports whether a server was killed. A busy server may refuse a request before it is
// killed. If workers gave up because of a refusal, the count would never be reached and the test
// would hang.
func isGone(p *harness.Project) bool {
	_, err := p.Try("GET", "/robots.txt")
	return err != nil
}

// await waits until the count is at least n.
func (c *counter) await(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.n < n {
		c.more.Wait()
	}
}
