// Package revocation reports whether tokens have been revoked.
//
// Revocations are numbered rows of the database. Each node keeps the rows that have not expired in
// memory. It polls for new ones, so that a revocation takes effect on all nodes within a second. If
// a node has not polled successfully for five seconds, it waits at most a second for the next poll,
// and then refuses to answer.
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
	Token      = "token"      // a single token, by its jti
	Grant      = "grant"      // an OAuth grant: its refresh token and its access tokens
	Family     = "family"     // a fabric refresh token and the SATs issued with it
	Session    = "session"    // a login, by its sid
	Subscriber = "subscriber" // all tokens of a subscriber
	Client     = "client"     // all tokens of an OAuth client
	Key        = "key"        // an API key
	Project    = "project"    // everything in a project

	Installation = "installation" // everything; its ID is empty

	KeyChange = "key-change" // drops cached facts about an API key; its tokens remain valid
)

// A Revocation invalidates all tokens that were issued for a thing until a given time.
type Revocation struct {
	Kind, ID string
	Until    time.Time // tokens issued until then are revoked
	Expires  time.Time // when the last of these tokens has expired
}

// A Log holds the revocations of all nodes. Its rows are numbered in the order of their commits.
//
// RevocationsSince returns the rows with a number above seq that have not expired, and the number
// of the last row. If that number is below seq, the log was restored from a backup, and
// RevocationsSince returns all rows.
type Log interface {
	AddRevocation(ctx context.Context, r Revocation) error
	RevocationsSince(ctx context.Context, seq int64) (rows []Revocation, last int64, err error)
}

const (
	pollEvery = 250 * time.Millisecond // interval between polls of the log
	staleness = 5 * time.Second        // age above which a list is too old for Check to answer
	patience  = time.Second            // how long Check waits for a newer list

	// pruneEvery is the interval at which expired revocations are deleted. It is long, because checks
	// wait during the deletion.
	pruneEvery = 10 * time.Minute
)

// A List reports whether tokens were revoked. Create one with [New], then call Run.
type List struct {
	log Log
	now func() time.Time

	mu     sync.RWMutex
	dead   map[string]Revocation // by kind and id, separated by a colon
	heard  int64                 // see [List.Heard]
	seq    int64                 // see [List.Known]
	failed bool                  // the last poll failed, so the log may have been replaced by a backup
	polls  bool                  // whether Run is polling
	polled chan struct{}         // closed when the next poll has ended
	synced time.Time
	pruned time.Time
}

// New returns a List that reads log. If now is nil, it uses time.Now.
func New(log Log, now func() time.Time) *List {
	if now == nil {
		now = time.Now
	}
	return &List{log: log, now: now, dead: make(map[string]Revocation), polled: make(chan struct{})}
}

// Run polls the log until ctx is done.
func (l *List) Run(ctx context.Context) {
	l.setPolls(true)
	defer l.setPolls(false)
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		_ = l.Sync(ctx) // after errors, the list becomes stale and Check refuses to answer
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (l *List) setPolls(polls bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.polls = polls
}

// Sync reads new revocations from the log. Callers that have just written a revocation call Sync,
// so that it takes effect on their own node immediately.
func (l *List) Sync(ctx context.Context) error {
	began := l.now()
	seq := l.next()
	rows, last, err := l.log.RevocationsSince(ctx, seq)

	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.polled)
	l.polled = make(chan struct{})
	if err != nil {
		l.failed = l.failed || ctx.Err() == nil
		return fmt.Errorf("reading revocations: %w", err)
	}

	l.failed = false
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

// next returns the sequence number after which to read. After a failure it returns 0, so that the
// whole log is read, since the log may have been replaced.
func (l *List) next() int64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.failed {
		return 0
	}
	return l.seq
}

// add adds rows from the log to the list. The caller must hold the lock.
func (l *List) add(rows []Revocation) {
	for _, r := range rows {
		key := r.Kind + ":" + r.ID
		if old, ok := l.dead[key]; !ok || r.Until.After(old.Until) {
			l.dead[key] = r
			l.heard++
		}
	}
}

// prune deletes expired revocations, at most once per pruneEvery. The caller must hold the lock.
func (l *List) prune(now time.Time) {
	if now.Sub(l.pruned) <= pruneEvery {
		return
	}
	l.pruned = now
	maps.DeleteFunc(l.dead, func(_ string, r Revocation) bool { return r.Expires.Before(now) })
}

// Age returns the time since this node last read the log.
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

// Heard returns a number that grows whenever this node reads a revocation that is new to it. Callers
// need not check a token again until the number changes.
func (l *List) Heard() int64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.heard
}

// Known returns the sequence number of the last revocation that this node has read.
func (l *List) Known() int64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.seq
}

// A Subject is something that a token depends on, such as a login or a client.
type Subject struct{ Kind, ID string }

// Check returns problem.Unauthenticated if any of the subjects, or the whole installation, was
// revoked at or after issued, the time when the token was issued. It returns problem.Unavailable if
// this node has not read the log for five seconds. Subjects with an empty ID are skipped.
//
// A process that was suspended, or was waiting for its disk, has also not read the log for some
// time. So before Check refuses, it waits up to a second for the next poll, unless reading has
// failed.
func (l *List) Check(issued time.Time, subjects ...Subject) error {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.stale() {
		l.wait()
	}
	if l.stale() {
		return &problem.Error{
			Kind:       problem.Unavailable,
			Code:       "temporarily_unavailable",
			Message:    "the list of revocations is not available",
			RetryAfter: time.Second,
		}
	}

	if len(l.dead) == 0 {
		return nil
	}
	if r, ok := l.dead[Installation+":"]; ok && !issued.After(r.Until) {
		return problem.NoCredentials().Because("a restore ended all credentials")
	}
	for _, s := range subjects {
		if r, ok := l.dead[s.Kind+":"+s.ID]; ok && s.ID != "" && !issued.After(r.Until) {
			return problem.NoCredentials().Because("its " + s.Kind + " was revoked")
		}
	}
	return nil
}

// stale reports whether the list is too old to answer. The caller must hold the lock.
func (l *List) stale() bool { return l.now().Sub(l.synced) > staleness }

// wait waits until this node has read the log, reading has failed, or patience has passed. The
// caller must hold the lock for reading. wait releases the lock while it waits.
func (l *List) wait() {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for l.polls && !l.failed && l.stale() {
		polled, expired := l.polled, false
		l.mu.RUnlock()
		select {
		case <-polled:
		case <-timer.C:
			expired = true
		}
		l.mu.RLock()
		if expired {
			return
		}
	}
}
