// Package failover keeps sessions available while their store is down. It is a [session.Store] that
// combines two others. The primary (Redis) is used as long as it answers. The fallback (a database)
// holds the entries that are written while the primary is unavailable.
//
// # When the primary fails
//
// Every result that the session.Store contract does not define is a failure: no connection, no
// answer in time, READONLY, OOM, CLUSTERDOWN, LOADING. A failed operation runs on the fallback
// immediately, so callers get an error only if both stores are unavailable.
//
// The first failure triggers a probe of the primary. The breaker opens after two consecutive failed
// probes, or after three failures within a second. While it is open, the primary receives only
// probes, two per second. Two consecutive successful probes close the breaker. If the breaker opens
// again within a minute, closing it takes more successful probes, up to sixteen. While the breaker
// is closed, the primary is probed every five seconds, to find outages that no caller has noticed
// yet.
//
// If one master of a Redis Cluster is unavailable, the whole Cluster counts as unavailable. Otherwise
// every operation on an entry in this master's slots would wait for a timeout.
//
// # Entries after an outage
//
// After an outage, the fallback may still hold entries that were written during the outage. The
// fallback is said to linger until the longest lifetime of these entries has passed. While it
// lingers, it is asked before the primary, because its copy of an entry is newer. Otherwise the
// fallback is asked only if the primary fails or does not have the entry.
//
// A Put to the primary removes the copy in the fallback. A CompareAndSwap changes the copy in the
// fallback, if there is one; that copy expires when the lingering ends, if not before. If an entry is
// deleted or taken during an outage, a mark is left in the fallback, because the primary may still have the
// entry, or may get it later from a command that was abandoned but is still running.
//
// To a single process, the two stores therefore look like one store. No matter which of them has an
// entry, it can be taken only once and added only once, and it is gone once it is deleted. This
// requires that all entries of a kind have the same lifetime, so that the older copy expires first.
// The exceptions are:
//
//   - Entries that only the primary has are missing while it is unavailable. Logins in progress
//     start over, and Add succeeds for an existing key.
//   - Counters start over on the fallback, and later continue from the primary's count. This is
//     also true of rates, which each node counts in memory during an outage.
//   - If the primary does not answer an operation, it may still have run the operation. A Take
//     may have lost the entry, a CompareAndSwap may have succeeded but return NotFound, and an
//     Incr may have counted twice. An entry is never taken twice.
//
// # Several nodes
//
// The primary may be unavailable to only some of the nodes, so all nodes must share the fallback.
// The time at which the lingering ends is stored in the fallback. Each node reads it when it
// starts, and then once a second. Before a node has read it, the node may find an older copy in the
// primary, or take an entry from the primary that was also taken from the fallback. A node that
// cannot reach the primary does not see what other nodes write there.
//
// For these reasons, anything that must happen only once, or that must be revoked for good, is decided by
// a row in the database, and never by a Store.
package failover

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/selvage/selvage/internal/session"
)

// A Primary is a store that can become unavailable.
type Primary interface {
	session.Store
	// Probe checks that every server of the store accepts writes. It takes about a second at most.
	// Its error is logged, so it must not contain secrets.
	Probe(ctx context.Context) error
}

// Config configures a Store.
type Config struct {
	Log *slog.Logger // logs when the primary becomes unavailable or available again; nil means slog.Default()
	// Longest is the longest lifetime of entries that other processes write to the primary; 0 means
	// 24 h. The lifetimes of this process's own entries are known.
	Longest time.Duration
}

// A Store is a session.Store that combines a primary and a fallback. Create one with [New].
type Store struct {
	primary  Primary
	fallback session.Store
	meter    session.Meter // counts rates while the primary is unavailable
	log      *slog.Logger

	era     atomic.Uint64 // incremented when the breaker opens or closes; an even number while it is closed
	until   atomic.Int64  // when the fallback stops lingering, in Unix microseconds; 0 if it does not linger
	longest atomic.Int64  // the longest lifetime of an entry
	counts  [backends][results]atomic.Uint64

	mu       sync.Mutex // guards the breaker
	breaker  breaker
	kick     chan struct{} // triggers a probe of the primary
	done     context.Context
	close    context.CancelFunc
	watchers sync.WaitGroup
}

var _ session.Store = (*Store)(nil)

// New returns a Store and starts watching the primary. It reads from the fallback until when the fallback
// lingers. If that cannot be read, New assumes that the fallback lingers for c.Longest.
func New(primary Primary, fallback session.Store, c Config) *Store {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Longest <= 0 {
		c.Longest = 24 * time.Hour
	}

	s := &Store{primary: primary, fallback: fallback, log: c.Log, kick: make(chan struct{}, 1)}
	s.longest.Store(int64(c.Longest))
	s.done, s.close = context.WithCancel(context.Background())

	if s.readLinger() != nil {
		s.raiseLinger(time.Now().Add(c.Longest)) // the fallback may hold entries of any age
	}

	s.probe()
	s.watchers.Go(s.watchPrimary)
	s.watchers.Go(s.watchLinger)
	return s
}

// Close stops watching. It does not close the two stores.
func (s *Store) Close() error {
	s.close()
	s.watchers.Wait()
	return nil
}
