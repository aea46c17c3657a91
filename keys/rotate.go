package keys

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/internal/problem"
)

// Rotate makes the next key of a use current, retires the current key, and creates a new next key.
// It returns the new current key. If there is no next key, it returns problem.NotFound. It returns
// problem.Conflict if another node changes the ring at the same time. Unless unpublished is set, it
// also returns problem.Conflict if the next key has not been published for long enough.
func (r *Ring) Rotate(ctx context.Context, use Use, unpublished bool) (Record, error) {
	if err := r.Sync(ctx); err != nil {
		return Record{}, err
	}

	s := r.latest.Load()
	next, ok := s.find(use, Next)
	if !ok {
		return Record{}, problem.New(problem.NotFound, "not_found", "no next %s key", use)
	}
	if err := s.closed[next.Kid]; err != nil {
		return Record{}, err
	}
	if !unpublished {
		if err := r.checkPublished(ctx, next); err != nil {
			return Record{}, err
		}
	}

	successor, err := r.create(ctx, use, Next)
	if err != nil {
		return Record{}, err
	}
	current, _ := s.find(use, Current)
	promoted := r.promotion(next)
	if err := r.change(ctx, []Move{r.retirement(current), promoted}, successor); err != nil {
		return Record{}, err
	}
	return promoted.To, nil
}

// checkPublished returns an error if next has not been published for long enough, or if this
// machine's clock is wrong; see checkClock.
func (r *Ring) checkPublished(ctx context.Context, next Record) error {
	if known := next.Created.Add(r.c.Publish); r.c.Now().Before(known) {
		return problem.New(problem.Conflict, "not_published",
			"the next %s key was published at %s; verifiers may not know it until %s",
			next.Use, formatTime(next.Created), formatTime(known))
	}
	return r.checkClock(ctx)
}

// checkClock returns an error if this machine's clock differs too much from the store's. In that
// case, the node does not promote or delete keys because of their age.
func (r *Ring) checkClock(ctx context.Context) error {
	theirs, err := r.c.Store.Clock(ctx)
	if err != nil {
		return fmt.Errorf("reading the database's clock: %w", err)
	}
	if apart := r.c.Now().Sub(theirs).Abs(); apart > max(r.c.Publish/4, time.Second) {
		return fmt.Errorf("this machine's clock and the database's are %s apart: keys are not rotated",
			apart.Round(time.Second))
	}
	return nil
}

// Retire revokes a key. Within two seconds, every node refuses the tokens that the key signed or
// sealed, and the key is no longer in the JWKS. The key's secret is deleted. If the key was
// current, the next key replaces it, even if that key has not been published for long enough. If
// there is no usable next key, Retire creates a new current key.
//
// If the key is already revoked, Retire does nothing. If the key does not exist, the error is
// problem.NotFound.
func (r *Ring) Retire(ctx context.Context, kid string) (err error) {
	for range attempts {
		if err = r.Sync(ctx); err != nil {
			return err
		}
		err = r.revoke(ctx, kid)
		if !errors.Is(err, problem.Conflict) {
			return err
		}
	}
	return err
}

// revoke is one attempt of Retire. It returns problem.Conflict if another node changes the ring at
// the same time.
func (r *Ring) revoke(ctx context.Context, kid string) error {
	s := r.latest.Load()
	i := slices.IndexFunc(s.records, func(rec Record) bool { return rec.Kid == kid })
	if i < 0 {
		return problem.NoSuch("ring key")
	}
	rec := s.records[i]

	revoked := Move{From: rec.State, To: rec}
	revoked.To.State = Revoked
	revoked.To.Retired = r.c.Now()
	revoked.To.Sealed = ""
	moves := []Move{revoked}
	missing := rec.State // the state of the key to create
	switch rec.State {
	case Revoked:
		return nil
	case Retired:
		return r.change(ctx, moves)
	case Current:
		if next, ok := s.find(rec.Use, Next); ok && s.closed[next.Kid] == nil {
			moves = append(moves, r.promotion(next))
			missing = Next
		}
	}

	created, err := r.create(ctx, rec.Use, missing)
	if err == nil {
		return r.change(ctx, moves, created)
	}
	if missing == Current {
		return err
	}
	return r.change(ctx, moves) // revoke anyway; Tend creates the next key later
}

// promotion returns the move that makes a next key the current key.
func (r *Ring) promotion(next Record) Move {
	next.State = Current
	next.Activated = r.c.Now()
	return Move{From: Next, To: next}
}

// retirement returns the move that retires the current key.
func (r *Ring) retirement(current Record) Move {
	before := current.State
	current.State = Retired
	current.Retired = r.c.Now()
	return Move{From: before, To: current}
}

// change applies moves, adds keys, and then reads the ring again.
func (r *Ring) change(ctx context.Context, moves []Move, added ...Record) error {
	err := r.c.Store.ChangeRing(ctx, moves, added)
	if err != nil && !errors.Is(err, problem.Conflict) {
		return fmt.Errorf("changing key ring: %w", err)
	}
	return errors.Join(err, r.Sync(ctx))
}

// create returns a new key. The caller must add it to the ring.
func (r *Ring) create(ctx context.Context, use Use, state State) (rec Record, err error) {
	secret, err := r.secret(ctx, use)
	if err != nil {
		return rec, err
	}
	return r.record(use, state, secret)
}

// secret creates the secret or handle of a new key.
func (r *Ring) secret(ctx context.Context, use Use) ([]byte, error) {
	if use == Seal {
		secret := make([]byte, 32)
		rand.Read(secret)
		return secret, nil
	}
	ctx, cancel := context.WithTimeout(ctx, custodyTimeout)
	defer cancel()
	return r.c.Custody.Make(ctx, use)
}

// record returns the record of a key. Its kid is a UUIDv7, which reveals only the key's age.
func (r *Ring) record(use Use, state State, secret []byte) (rec Record, err error) {
	id, err := uuid.NewV7()
	if err != nil {
		return rec, fmt.Errorf("creating key id: %w", err)
	}

	// Created is the current time and not earlier, because the key counts as published from then on.
	rec = Record{Kid: id.String(), Use: use, State: state, Created: r.c.Now()}
	if state == Current {
		rec.Activated = rec.Created
	}
	rec.Sealed, err = r.newest().master.seal(secret, rec.Kid)
	return rec, err
}

// complete creates all missing keys in one change, so that nodes that start at the same time do not
// each add some of them.
//
// The keys are created concurrently, on all CPUs. An RSA key takes a tenth of a second, and the
// first start needs four of them: two for RS256, and two for PS256. On two CPUs, creating all four
// takes only as long as creating two on one CPU. If the keys for PS256 were created later,
// discovery would name an algorithm that has no key yet.
func (r *Ring) complete(ctx context.Context) error {
	var added []Record
	s := r.latest.Load()
	for _, use := range Uses() {
		for _, state := range []State{Current, Next} {
			if _, ok := s.find(use, state); !ok {
				added = append(added, Record{Use: use, State: state})
			}
		}
	}

	if len(added) == 0 {
		return nil
	}

	secrets := make([][]byte, len(added))
	errs := make([]error, len(added))
	var making sync.WaitGroup
	for i, rec := range added {
		making.Go(func() { secrets[i], errs[i] = r.secret(ctx, rec.Use) })
	}
	making.Wait()

	for i, rec := range added {
		if errs[i] == nil {
			added[i], errs[i] = r.record(rec.Use, rec.State, secrets[i])
		}
	}

	if err := errors.Join(errs...); err != nil {
		return err
	}
	return r.change(ctx, nil, added...)
}

// formatTime formats a time for display.
func formatTime(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") }
