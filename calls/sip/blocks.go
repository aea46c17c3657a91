package sip

import (
	"net/netip"
	"sync"
	"time"
)

// A blockKey identifies senders whose credentials are not checked. These senders use a certain
// username in a network. If username is "", they are all unregistered senders in the network.
type blockKey struct {
	network  netip.Prefix
	username string
}

// maxBlocks is the maximum number of blocks that a server keeps.
const maxBlocks = 50_000

// blocks holds the senders that failed to authenticate too many times, and when each block ends.
type blocks struct {
	mu    sync.Mutex
	until map[blockKey]time.Time
}

func (b *blocks) has(k blockKey, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	until, ok := b.until[k]
	return ok && now.Before(until)
}

func (b *blocks) add(k blockKey, until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.until == nil {
		b.until = make(map[blockKey]time.Time)
	}
	if len(b.until) < maxBlocks {
		b.until[k] = until
	}
}

func (b *blocks) sweep(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for k, until := range b.until {
		if now.After(until) {
			delete(b.until, k)
		}
	}
}
