package keys

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Sync reads the ring if it has changed since the last read. If the store does not
// answer, the ring keeps what it has read.
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
	// The version is read before the keys, so the keys are of this version or a later one.
	version, err := r.c.Store.RingVersion(ctx)
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
			return nil // a later version has been read meanwhile
		}
	}
	return nil
}

// lookAgain reads the ring when a token has an unknown kid, because another node may have
// just made that key. It reads at most once a second, so that made-up kids do not cause
// queries. Concurrent callers wait for the one that reads, and then return.
func (r *Ring) lookAgain() {
	r.strangers.Lock()
	defer r.strangers.Unlock()
	if since := r.c.Now().Sub(r.asked); since >= 0 && since < pollEvery {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), pollEvery)
	defer cancel()
	_ = r.Sync(ctx)     // Status reports an error
	r.asked = r.c.Now() // set afterwards: if the store hangs, waiting callers do not try again
}

// Trusts reports whether whatever a key has made is still to be accepted: whether the key
// is neither revoked nor deleted.
func (r *Ring) Trusts(kid string) bool {
	s := r.latest.Load()
	return s.signers[kid] != nil || s.roots[kid] != nil
}

// Heard returns a number that changes when this node learns of a change of the ring.
func (r *Ring) Heard() int64 { return r.latest.Load().version }

// A Status describes the health of a ring.
type Status struct {
	Synced time.Time         // when the store last answered
	Err    error             // the current errors; nil if there are none
	Since  map[Use]time.Time // when the keys in use became current
}

// Status returns the ring's status. Whatever is wrong, the ring keeps working with the
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
