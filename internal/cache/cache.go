// Package cache keeps values for 300 ms, so that a row requested a thousand times a second is read
// from the database only about four times a second.
package cache

import (
	"sync"
	"sync/atomic"
	"time"
)

// For is how long a value is kept. It is well below one second, the time within which every node
// must see a change.
const For = 300 * time.Millisecond

// renewAfter is the age at which one caller reads a value again. Meanwhile, the other callers get
// the old value. If all callers waited until the value had expired, they would all read it at the
// same time.
const renewAfter = For * 5 / 6

// maxSize is the maximum number of values that a cache from [New] keeps. A full cache is emptied.
const maxSize = 10_000

// sweepEvery is how often expired values are removed. Without this, the values from a busy time
// would stay in memory.
const sweepEvery = 10 * time.Second

// A Cache keeps values for a short time. Create one with [New]. It is safe for concurrent use.
type Cache[V any] struct {
	now      func() time.Time
	size     int
	mu       sync.RWMutex
	m        map[string]*entry[V]
	drops    int  // the number of calls to Drop and Clear
	sweeping bool // whether sweep is scheduled
}

type entry[V any] struct {
	value   V
	read    time.Time
	renewed atomic.Bool // whether a caller is reading the value again
}

// due reports whether the caller must read the value again.
func (e *entry[V]) due(now time.Time) bool {
	age := now.Sub(e.read)
	if age < 0 || age >= For { // the age is negative if the clock was set back
		return true
	}
	return age >= renewAfter && e.renewed.CompareAndSwap(false, true)
}

// New returns a cache that gets the time from the function now.
func New[V any](now func() time.Time) *Cache[V] { return NewSize[V](now, maxSize) }

// NewSize is like [New], but the cache keeps at most size values. It is meant for large values.
func NewSize[V any](now func() time.Time, size int) *Cache[V] {
	return &Cache[V]{now: now, size: size, m: make(map[string]*entry[V])}
}

// Load returns the value of key. If the value was read within the last 300 ms ([For]), Load returns
// it again. Otherwise Load calls read, and keeps its result unless it is an error. Shortly before
// the value expires, Load calls read for one caller, and still returns the old value to the others.
// If Drop or Clear is called during the read, the value may be out of date and is not kept.
func (c *Cache[V]) Load(key string, read func() (V, error)) (V, error) {
	c.mu.RLock()
	e := c.m[key]
	drops := c.drops
	c.mu.RUnlock()

	// The time is taken before reading, so that a slow read does not make the value look newer.
	now := c.now()
	if e != nil && !e.due(now) {
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
	c.m[key] = &entry[V]{value: value, read: now}
	if !c.sweeping {
		c.sweeping = true
		time.AfterFunc(sweepEvery, c.sweep)
	}
	return value, nil
}

// sweep removes expired values, and schedules the next sweep unless the cache is empty.
func (c *Cache[V]) sweep() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	for key, e := range c.m {
		if age := now.Sub(e.read); age < 0 || age >= For {
			delete(c.m, key)
		}
	}

	c.sweeping = len(c.m) > 0
	if c.sweeping {
		time.AfterFunc(sweepEvery, c.sweep)
	} else {
		c.m = make(map[string]*entry[V]) // a map does not shrink
	}
}

// Drop removes a key. It must be called after every change of the key's value.
func (c *Cache[V]) Drop(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.m, key)
	c.drops++
}

// Clear removes every key. It must be called after a change that may affect any value.
func (c *Cache[V]) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.m)
	c.drops++
}
