// Package revocation tells whether a token was revoked, without asking anybody.
//
// Revocations are rows with a sequence number. Each node holds those that can
// still matter in memory and polls for new ones, so that one holds everywhere
// within a second. A node that could not poll for a while refuses to answer, once it has
// tried again.
package revocation

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// The kinds of thing whose tokens can be revoked.
const (
	Token      = "token"      // one token, by its jti
	Grant      = "grant"      // an OAuth grant: its access tokens die with its refresh token
	Family     = "family"     // a fabric refresh token and the SATs that came with it
	Session    = "session"    // a login, by its sid
	Subscriber = "subscriber" // all tokens of a subscriber
	Client     = "client"     // all tokens of an OAuth client
	Key        = "key"        // an API key
	Project    = "project"    // everything of a project

	KeyChange = "key-change" // what nodes remember of an API key; its tokens live on
)

// A Revocation ends what was issued for a thing up to a moment.
type Revocation struct {
	Kind, ID string
	Until    time.Time // tokens issued up to then are dead
	Expires  time.Time // when the last token it concerns has expired by itself
}

// A Log is where revocations are written and read, by every node. Rows carry
// numbers in the order of their commits; RevocationsSince gives those after seq
// which have not expired, and the last number. Where that is less than seq, the log
// was set back, to a backup: then it gives all.
type Log interface {
	AddRevocation(ctx context.Context, r Revocation) error
	RevocationsSince(ctx context.Context, seq int64) (rows []Revocation, last int64, err error)
}

// The rhythm of polling, how stale a list may be before it refuses, for how long a check
// waits for one that is, and how often expired revocations are forgotten.
const (
	pollEvery = 250 * time.Millisecond
	staleness = 5 * time.Second
	patience  = time.Second

	pruneEvery = 10 * time.Minute // checks wait while all are looked at
)

// A List answers whether a token was revoked. Make one with [New], then Run it.
type List struct {
	log Log
	now func() time.Time

	mu     sync.RWMutex
	dead   map[string]Revocation
	heard  int64
	seq    int64
	deaf   bool          // the last look failed: what is there now may be an older log
	polls  bool          // Run does
	looked chan struct{} // closed at the end of the look at the log that is next to end
	synced time.Time
	pruned time.Time
}

// New makes a List over a Log. A nil now means time.Now.
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
		_ = l.Sync(ctx) // an error shows as staleness, which Check refuses
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

// Sync reads what is new in the log. Callers that have just written a
// revocation use it, so that their own node knows at once.
func (l *List) Sync(ctx context.Context) error {
	l.mu.RLock()
	seq := l.seq
	if l.deaf {
		seq = 0
	}
	l.mu.RUnlock()
	began := l.now()
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
	for _, r := range rows {
		if old, ok := l.dead[r.Kind+":"+r.ID]; !ok || r.Until.After(old.Until) {
			l.dead[r.Kind+":"+r.ID] = r
			l.heard++
		}
	}
	if last < seq {
		l.seq = last
	}
	l.seq = max(l.seq, last)
	if began.After(l.synced) {
		l.synced = began
	}
	if began.Sub(l.pruned) > pruneEvery {
		l.pruned = began
		maps.DeleteFunc(l.dead, func(_ string, r Revocation) bool { return r.Expires.Before(began) })
	}
	return nil
}

// Age tells how long ago this node has heard from the log; since ever if never.
func (l *List) Age() time.Duration {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.now().Sub(l.synced)
}

// Revoke writes a revocation and makes it known to this node.
func (l *List) Revoke(ctx context.Context, r Revocation) error {
	if err := l.log.AddRevocation(ctx, r); err != nil {
		return fmt.Errorf("writing revocation: %w", err)
	}
	return l.Sync(ctx)
}

// Heard tells how many revocations this node has heard of. While it stays what it
// was before a token was checked, the token need not be checked again.
func (l *List) Heard() int64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.heard
}

// A Subject is one thing that a token depends on.
type Subject struct{ Kind, ID string }

// Check returns problem.Unauthenticated if any of the subjects was revoked at or
// after the moment a token was issued, and problem.Unavailable if this node has
// not heard from the log for five seconds. Subjects with an empty ID are skipped. A
// process that was stopped, or waited for its disk, has heard nothing either: where the
// log did not fail, Check waits a second for it.
func (l *List) Check(issued time.Time, subjects ...Subject) error {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.stale() {
		l.wait()
	}
	if l.stale() {
		return &problem.Error{Kind: problem.Unavailable, Code: "temporarily_unavailable",
			Message: "revocations cannot be read", RetryAfter: time.Second}
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

// stale is called with the lock held.
func (l *List) stale() bool { return l.now().Sub(l.synced) > staleness }

// wait waits until this node has heard from the log, the log has failed, or patience is
// at its end. It is called with the lock held for reading, and gives it away meanwhile.
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
