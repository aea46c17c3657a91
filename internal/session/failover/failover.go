// Package failover keeps sessions available while their store is down. It is a [session.Store] over two
// others. The primary (Redis) is used as long as it answers. The fallback (a database) holds what is
// written while the primary is away.
//
// # When the primary fails
//
// A failure is everything that is not an answer of the session.Store contract: no connection, no answer
// in time, READONLY, OOM, CLUSTERDOWN, LOADING. A failed operation runs on the fallback at once, so a
// caller sees an error only if both stores are away.
//
// The first failure triggers a probe of the primary. The breaker opens after two failed probes in a row,
// or three failures within a second. While it is open, the primary receives only a probe twice a second.
// Two good probes close the breaker; if it opened again within a minute, more are needed, up to sixteen.
// While it is closed, a probe every five seconds finds an outage that no caller has met yet.
//
// If one master of a cluster is away, the whole cluster counts as away. Otherwise every operation on an
// entry in its slots would wait for a timeout.
//
// # Entries after an outage
//
// An entry that is absent in the primary is looked for in the fallback. The fallback lingers while it may
// still hold entries from an outage: as long as the longest lifetime given to one of them. While it
// lingers, it is asked first, because its copy is newer than the primary's. A Put to the primary removes
// the copy. A swap changes the copy, which then ends with the lingering at the latest. An entry deleted or
// taken during an outage leaves a mark in the fallback. The primary may still have the entry, or get it
// later from a command that was given up but still runs.
//
// To one process, therefore, the two are one store: whichever of them has an entry, it is taken once, added
// once, and gone once it is deleted. This requires that entries of one kind have one lifetime, so that an
// older copy expires first. These are the exceptions:
//
//   - Entries that only the primary has are absent while it is away. Logins in progress start over, and
//     Add succeeds for an existing key.
//   - Counters start over on the fallback, and afterwards continue where the primary left off. The same
//     holds for rates, which each node counts in memory during an outage.
//   - An operation that failed without an answer may have been run. A Take may have lost the entry, a
//     CompareAndSwap may have won but return NotFound, an Incr may have counted twice. An entry is never
//     taken twice.
//
// # Several nodes
//
// Nodes may see the primary differently, so they must share the fallback. The end of the lingering is
// written to the fallback. Each node reads it there once a second, and when it starts. Until then another
// node may find an older copy in the primary, or take an entry from it that was also taken from the
// fallback. A node that cannot reach the primary never finds what others write there.
//
// Anything that must happen only once, or be revoked for good, is therefore decided by a row of the
// database, never here.
package failover

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/selvage/selvage/internal/session"
)

// A Primary is a store that can be away.
type Primary interface {
	session.Store
	// Probe checks, within about a second, that all of the store takes writes. Its error may be logged.
	Probe(ctx context.Context) error
}

// Config configures a Store.
type Config struct {
	Log *slog.Logger // gets a line when the primary goes away or comes back; nil means slog.Default()
	// Longest is the longest lifetime of entries that other processes put into the primary; 0 means 24 h.
	// The lifetimes of this process's own entries are known.
	Longest time.Duration
}

// A Store is a session.Store over a primary and a fallback. Make one with [New].
type Store struct {
	primary  Primary
	fallback session.Store
	meter    session.Meter // counts rates while the primary is away
	log      *slog.Logger

	era     atomic.Uint64 // even while the primary is used; incremented whenever that changes
	until   atomic.Int64  // when the fallback stops lingering, in Unix microseconds; 0 means it does not linger
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

// New returns a Store and starts to watch the primary. It reads from the fallback whether that lingers.
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
		s.raise(time.Now().Add(c.Longest)) // the worst case
	}

	s.probe()
	s.watchers.Go(s.watchPrimary)
	s.watchers.Go(s.watchLinger)
	return s
}

// Close stops the watch. It does not close the two stores.
func (s *Store) Close() error {
	s.close()
	s.watchers.Wait()
	return nil
}
