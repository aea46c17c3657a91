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
	now   func() time.Time
	size  int
	mu    sync.RWMutex
	m     map[string]entry[V]
	drops int // how often something was forgotten on purpose
}

type entry[V any] struct {
	value V
	read  time.Time
}

// New makes a cache on a clock.
func New[V any](now func() time.Time) *Cache[V] { return Small[V](now, size) }

// Small is New for values that are large: it keeps so many at most.
func Small[V any](now func() time.Time, size int) *Cache[V] {
	return &Cache[V]{now: now, size: size, m: make(map[string]entry[V])}
}

// Load returns the value of a key: the one that was read within the last 300 ms,
// else what read gives, unless that is an error. What is read while something is
// dropped may be old already, and is not kept.
func (c *Cache[V]) Load(key string, read func() (V, error)) (V, error) {
	c.mu.RLock()
	e, ok := c.m[key]
	drops := c.drops
	c.mu.RUnlock()
	now := c.now()                                           // before it is read: that is how old it is
	if age := now.Sub(e.read); ok && 0 <= age && age < For { // a clock may be set back
		return e.value, nil
	}
	value, err := read()
	if err != nil {
		return value, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.drops != drops {
		return value, nil
	}
	if len(c.m) >= c.size {
		clear(c.m)
	}
	c.m[key] = entry[V]{value, now}
	return value, nil
}

// Drop forgets a key: this process has just changed what it stands for.
func (c *Cache[V]) Drop(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.m, key)
	c.drops++
}

// Clear forgets everything: this process has just changed what any key may stand
// for.
func (c *Cache[V]) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.m)
	c.drops++
}
