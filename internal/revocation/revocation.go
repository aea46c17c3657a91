// Package revocation reports whether a token was revoked, from memory.
//
// Revocations are rows with a sequence number. Each node keeps the rows that can still
// matter in memory and polls for new ones, so that a revocation takes effect everywhere
// within a second. A node that could not poll for a while tries once more and then refuses
// to answer.
package revocation

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// The kinds of things whose tokens can be revoked.
const (
	Token      = "token"      // one token, by its jti
	Grant      = "grant"      // an OAuth grant: its refresh token and its access tokens
	Family     = "family"     // a fabric refresh token and the SATs issued with it
	Session    = "session"    // a login, by its sid
	Subscriber = "subscriber" // all tokens of a subscriber
	Client     = "client"     // all tokens of an OAuth client
	Key        = "key"        // an API key
	Project    = "project"    // everything in a project

	KeyChange = "key-change" // cached facts about an API key; its tokens stay valid
)

// A Revocation ends everything that was issued for a thing up to a moment.
type Revocation struct {
	Kind, ID string
	Until    time.Time // tokens issued up to then are revoked
	Expires  time.Time // when the last of these tokens has expired anyway
}

// A Log holds the revocations of all nodes. Its rows are numbered in the order of their
// commits. RevocationsSince returns the rows after seq that have not expired, and the last
// number. If the last number is below seq, the log was restored from a backup, and
// RevocationsSince returns all rows.
type Log interface {
	AddRevocation(ctx context.Context, r Revocation) error
	RevocationsSince(ctx context.Context, seq int64) (rows []Revocation, last int64, err error)
}

// How often the log is polled, how old a list may be before Check refuses to answer, how
// long Check waits for a newer one, and how often expired revocations are forgotten.
const (
	pollEvery = 250 * time.Millisecond
	staleness = 5 * time.Second
	patience  = time.Second

	pruneEvery = 10 * time.Minute // rarely, because checks wait meanwhile
)

// A List reports whether tokens were revoked. Make one with [New], then call Run.
type List struct {
	log Log
	now func() time.Time

	mu     sync.RWMutex
	dead   map[string]Revocation
	heard  int64
	seq    int64
	deaf   bool          // the last poll failed, so the log may have been replaced by an older one
	polls  bool          // Run is polling
	looked chan struct{} // closed when the next poll ends
	synced time.Time
	pruned time.Time
}

// New returns a List that reads log. A nil now means time.Now.
func New(log Log, now func() time.Time) *List {
	if now == nil {
		now = time.Now
	}
	return &List{log: log, now: now, dead: make(map[string]Revocation), looked: make(chan struct{})}
}

// Run polls the log until ctx ends.
func (l *List) Run(ctx context.Context) {
	l.poll(true)
	defer l.poll(false)
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		_ = l.Sync(ctx) // after an error the list grows stale, and Check refuses
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (l *List) poll(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.polls = on
}

// Sync reads new revocations from the log. A caller that wrote one calls it, so that its
// own node knows at once.
func (l *List) Sync(ctx context.Context) error {
	began := l.now()
	seq := l.next()
	rows, last, err := l.log.RevocationsSince(ctx, seq)

	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.looked)
	l.looked = make(chan struct{})
	if err != nil {
		l.deaf = l.deaf || ctx.Err() == nil
		return fmt.Errorf("reading revocations: %w", err)
	}

	l.deaf = false
	l.add(rows)
	if last < seq { // the log was restored from a backup
		l.seq = last
	}
	l.seq = max(l.seq, last)
	if began.After(l.synced) {
		l.synced = began
	}
	l.prune(began)
	return nil
}

// next returns the sequence number to read from: after a failure, the whole log is read,
// since it may have been replaced.
func (l *List) next() int64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.deaf {
		return 0
	}
	return l.seq
}

// add applies rows of the log. The caller holds the lock.
func (l *List) add(rows []Revocation) {
	for _, r := range rows {
		if old, ok := l.dead[r.Kind+":"+r.ID]; !ok || r.Until.After(old.Until) {
			l.dead[r.Kind+":"+r.ID] = r
			l.heard++
		}
	}
}

// prune removes expired revocations from time to time. The caller holds the lock.
func (l *List) prune(now time.Time) {
	if now.Sub(l.pruned) <= pruneEvery {
		return
	}
	l.pruned = now
	maps.DeleteFunc(l.dead, func(_ string, r Revocation) bool { return r.Expires.Before(now) })
}

// Age returns how long ago this node last read the log.
func (l *List) Age() time.Duration {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.now().Sub(l.synced)
}

// Revoke writes a revocation and applies it on this node.
func (l *List) Revoke(ctx context.Context, r Revocation) error {
	if err := l.log.AddRevocation(ctx, r); err != nil {
		return fmt.Errorf("writing revocation: %w", err)
	}
	return l.Sync(ctx)
}

// Heard returns how many revocations this node has read. While the number is unchanged, a
// token that was checked need not be checked again.
func (l *List) Heard() int64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.heard
}

// Known returns the number of the last revocation that this node has read.
func (l *List) Known() int64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.seq
}

// A Subject is one thing that a token depends on.
type Subject struct{ Kind, ID string }

// Check returns problem.Unauthenticated if any of the subjects was revoked at or after the
// moment a token was issued, and problem.Unavailable if this node has not read the log for
// five seconds. Subjects with an empty ID are skipped.
//
// A process that was stopped, or waited for its disk, has not read the log either. Unless
// reading failed, Check waits up to a second for the next poll before it refuses.
func (l *List) Check(issued time.Time, subjects ...Subject) error {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.stale() {
		l.wait()
	}
	if l.stale() {
		return &problem.Error{Kind: problem.Unavailable, Code: "temporarily_unavailable",
			Message: "the list of revocations is not available", RetryAfter: time.Second}
	}

	if len(l.dead) == 0 {
		return nil
	}
	for _, s := range subjects {
		if r, ok := l.dead[s.Kind+":"+s.ID]; ok && s.ID != "" && !issued.After(r.Until) {
			return problem.NoCredentials()
		}
	}
	return nil
}

// stale reports whether the list is too old to answer. The caller holds the lock.
func (l *List) stale() bool { return l.now().Sub(l.synced) > staleness }

// wait waits until this node has read the log, reading has failed, or patience has run
// out. The caller holds the lock for reading; wait releases it meanwhile.
func (l *List) wait() {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for over := false; !over && l.polls && !l.deaf && l.stale(); {
		looked := l.looked
		l.mu.RUnlock()
		select {
		case <-looked:
		case <-timer.C:
			over = true
		}
		l.mu.RLock()
	}
}
