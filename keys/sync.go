package keys

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Sync reads the ring if it has changed since the last read, or if the last read could not open
// some of its keys. If the store does not answer, the ring continues to use its current keys.
func (r *Ring) Sync(ctx context.Context) error {
	began := r.c.Now()
	err := r.sync(ctx)

	r.mu.Lock()
	defer r.mu.Unlock()
	r.syncErr = err
	if err == nil && began.After(r.synced) {
		r.synced = began
	}
	return err
}

func (r *Ring) sync(ctx context.Context) error {
	// Read the version before the keys, so that the keys are of this version or a later one.
	version, err := r.c.Store.RingVersion(ctx)
	if err != nil {
		return fmt.Errorf("reading version of key ring: %w", err)
	}

	old := r.latest.Load()
	if old != nil && old.version == version && len(old.closed) == 0 {
		return nil
	}
	m, roots, err := r.readMasters(ctx)
	if err != nil {
		return err
	}
	s, err := r.read(ctx, version, roots)
	if err != nil {
		return err
	}

	before := r.masters()
	for !r.latest.CompareAndSwap(old, s) {
		old = r.latest.Load()
		if old.version > version {
			return nil // a later version has been read in the meantime
		}
		before = old.masters
	}
	if r.c.Replaced != nil && len(before) != len(roots) {
		r.c.Replaced(m)
	}
	return nil
}

// lookAgain reads the ring because a token has an unknown kid. Another node may have just created
// this key. lookAgain reads at most once a second, so that made-up kids do not cause a flood of
// queries. If there are several callers at the same time, one of them reads, and the others wait for
// it.
func (r *Ring) lookAgain() {
	r.strangers.Lock()
	defer r.strangers.Unlock()
	if since := r.c.Now().Sub(r.asked); since >= 0 && since < pollEvery {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), pollEvery)
	defer cancel()
	_ = r.Sync(ctx)     // Status reports any error
	r.asked = r.c.Now() // set after Sync: if the store hangs, callers that waited do not read again
}

// Trusts reports whether tokens that a key has signed or sealed may still be accepted: the key must
// be neither revoked nor deleted.
func (r *Ring) Trusts(kid string) bool {
	s := r.latest.Load()
	return s.signers[kid] != nil || s.roots[kid] != nil
}

// Heard returns a number that changes whenever this node reads a changed ring.
func (r *Ring) Heard() int64 { return r.latest.Load().version }

// A Status describes the health of a ring.
type Status struct {
	Synced time.Time         // when the store last answered
	Err    error             // the current errors, or nil
	Since  map[Use]time.Time // when each key in use became current
}

// Status returns the status of the ring. Even if there are errors, the ring continues to use its
// keys.
func (r *Ring) Status() Status {
	s := r.latest.Load()
	since := make(map[Use]time.Time)
	for use, rec := range s.makers {
		since[use] = rec.Activated
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return Status{Synced: r.synced, Err: errors.Join(r.syncErr, s.err(), r.stepErr), Since: since}
}
