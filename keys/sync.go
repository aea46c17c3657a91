package keys

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Sync reads the ring if anybody has changed it since it was read. If the store
// does not answer, what was read stays.
func (r *Ring) Sync(ctx context.Context) error {
	began := r.c.Now()
	err := r.sync(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut = err
	if err == nil && began.After(r.synced) {
		r.synced = began
	}
	return err
}

func (r *Ring) sync(ctx context.Context) error {
	version, err := r.c.Store.RingVersion(ctx) // before the keys, which are then of this version or a later one
	if err != nil {
		return fmt.Errorf("reading version of key ring: %w", err)
	}
	old := r.latest.Load()
	if old != nil && old.version == version && len(old.closed) == 0 {
		return nil
	}
	s, err := r.read(ctx, version)
	if err != nil {
		return err
	}
	for !r.latest.CompareAndSwap(old, s) {
		if old = r.latest.Load(); old.version > version {
			return nil // somebody has read later
		}
	}
	return nil
}

// lookAgain reads the ring for a token under a kid that is not in it: a node which
// is faster may have made it. It does so once a second at most, so that nobody
// makes queries out of made-up kids; who comes in between waits for the one that
// reads, and returns.
func (r *Ring) lookAgain() {
	r.strangers.Lock()
	defer r.strangers.Unlock()
	if since := r.c.Now().Sub(r.asked); since >= 0 && since < pollEvery {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), pollEvery)
	defer cancel()
	_ = r.Sync(ctx)     // an error is in Status
	r.asked = r.c.Now() // afterwards: where the store hangs, who has waited need not try, too
}

// Trusts reports whether what a key has made is still to be taken: whether it is
// neither ended nor gone.
func (r *Ring) Trusts(kid string) bool {
	s := r.latest.Load()
	return s.signers[kid] != nil || s.roots[kid] != nil
}

// Heard changes whenever this node hears of a change of the ring.
func (r *Ring) Heard() int64 { return r.latest.Load().version }

// A Status tells how a ring is doing.
type Status struct {
	Synced time.Time         // when the store last answered
	Err    error             // what is wrong; nil if all is well
	Since  map[Use]time.Time // when the keys took over that sign and seal
}

// Status tells how the ring is doing. Whatever is wrong, it does its work with the
// keys that it has.
func (r *Ring) Status() Status {
	s := r.latest.Load()
	since := make(map[Use]time.Time)
	for use, rec := range s.makers {
		since[use] = rec.Activated
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return Status{r.synced, errors.Join(r.cut, s.err(), r.stuck), since}
}
