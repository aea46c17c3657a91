// Package recent remembers what was read a moment ago, so that a row which is
// asked for a thousand times a second is read three times.
package recent

import (
	"sync"
	"time"
)

// For is how long a value may be used again. It is well within the second in
// which every node must know of a change.
const For = 300 * time.Millisecond

// size bounds a cache: the one that is full starts anew.
const size = 10_000

// A Cache keeps values for a moment. Make one with [New]; it may be used from
// any number of goroutines.
type Cache[V any] struct {
	now func() time.Time
	mu  sync.RWMutex
	m   map[string]entry[V]
}

type entry[V any] struct {
	value V
	until time.Time
}

// New makes a cache on a clock.
func New[V any](now func() time.Time) *Cache[V] {
	return &Cache[V]{now: now, m: make(map[string]entry[V])}
}

// Get gives the value that was put under a key within the last 300 ms.
func (c *Cache[V]) Get(key string) (V, bool) {
	c.mu.RLock()
	e, ok := c.m[key]
	c.mu.RUnlock()
	return e.value, ok && c.now().Before(e.until)
}

// Put keeps a value for 300 ms.
func (c *Cache[V]) Put(key string, value V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.m) >= size {
		clear(c.m)
	}
	c.m[key] = entry[V]{value, c.now().Add(For)}
}

// Drop forgets a key: this process has just changed what it stands for.
func (c *Cache[V]) Drop(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.m, key)
}
