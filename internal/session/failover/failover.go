// Package failover keeps sessions going while their store is away: a
// [session.Store] over two others, the primary (Redis), which is asked as long as
// it answers, and the fallback (a database), which holds what is written
// meanwhile.
//
// # When the primary fails
//
// A failure is everything that is not an answer of the session.Store contract: no
// connection, no answer in time, READONLY, OOM, CLUSTERDOWN, LOADING. What failed
// is done on the fallback at once, so that a caller sees an error only where both
// are away. The first failure has the primary probed; after two failed probes in a
// row, or three failures within a second, the breaker opens, and nothing is asked of
// the primary but a probe twice a second. After two good ones it closes; after more,
// up to sixteen, where it opened again within a minute. A probe every five
// seconds finds an outage that nobody has run into yet.
//
// One master of a cluster that is away makes the whole cluster away: else every
// entry of its slots would be waited for.
//
// # What is found afterwards
//
// What is absent in the primary is looked for in the fallback. While entries from
// an outage can be left there - it lingers, as long as the longest lifetime that
// was given to one - the fallback is asked first: its copy is newer than the
// primary's. Putting the entry again in the primary removes the copy; swapping it
// changes the copy, which then ends with the lingering at the latest. An entry
// deleted or taken during an outage leaves a mark in the fallback, since the
// primary may have it still, or get it yet from a command that was given up and
// done all the same.
//
// So to one process the two are one store: an entry is taken once, added once and
// gone once it is deleted, whichever of them has it, as long as the entries of one
// kind have one lifetime, so that an older copy is the first to expire. These are
// the exceptions:
//
//   - What only the primary has is absent while it is away. Logins in progress
//     begin again, and Add succeeds for a key that is there.
//   - Counters begin again on the fallback, and go on afterwards where the primary
//     left off. So do rates, which each node keeps in its memory meanwhile.
//   - An operation that failed without an answer may have been done. A Take may
//     have lost the entry, a CompareAndSwap may have won and say NotFound, an Incr
//     may have counted twice. Never does one entry get taken twice.
//
// # Several nodes
//
// Nodes may see the primary differently, so they must share the fallback. That it
// lingers is written there and read by each node once a second, and by a process
// that starts. Until then another node may find an older copy in the primary, or
// take an entry from it that is taken from the fallback too; a node that cannot
// reach the primary never finds what others write there.
//
// What must happen once, or be revoked for good, is therefore decided by a row of
// the database, and never here.
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
	// Probe reports, within a second or so, whether the whole of it takes writes.
	// Its error may be logged.
	Probe(ctx context.Context) error
}

// Config says how a Store does.
type Config struct {
	Log *slog.Logger // told once when the primary goes and once when it is back; nil means slog.Default()
	// Longest is how long an entry may live in the primary that another process
	// put there; 0 means 24 h. Of what this process puts there it is known.
	Longest time.Duration
}

// A Store is a session.Store over two. Make one with [New].
type Store struct {
	primary  Primary
	fallback session.Store
	meter    session.Meter // counts rates while the primary is away
	log      *slog.Logger

	era     atomic.Uint64 // even while the primary is asked; each change of that begins another
	until   atomic.Int64  // in microseconds: when the fallback ceases to linger; 0 is long ago
	longest atomic.Int64  // the longest lifetime of an entry
	counts  [backends][results]atomic.Uint64

	mu       sync.Mutex // guards the breaker
	breaker  breaker
	kick     chan struct{} // has the primary probed now
	done     context.Context
	close    context.CancelFunc
	watchers sync.WaitGroup
}

var _ session.Store = (*Store)(nil)

// New makes a Store and begins to watch the primary. It reads from the fallback
// whether that lingers.
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
		s.raise(time.Now().Add(c.Longest)) // as far as we know
	}
	s.probe()
	s.watchers.Go(s.watchPrimary)
	s.watchers.Go(s.watchLinger)
	return s
}

// Close ends the watch. The two stores are for those to close who opened them.
func (s *Store) Close() error {
	s.close()
	s.watchers.Wait()
	return nil
}
