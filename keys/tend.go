package keys

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// pollEvery is how often a ring looks for changes from other nodes. It is also the minimum time
// between reads that are caused by unknown kids.
const pollEvery = time.Second

// Run keeps the ring up to date until ctx is done, and logs changes. While the store does not
// answer, Run keeps using the known keys.
func (r *Ring) Run(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	makers := r.latest.Load().makers
	trouble := "" // the last error that was logged
	for {
		err := r.Tend(ctx)
		if ctx.Err() != nil {
			return
		}
		trouble = logTrouble(log, trouble, err)

		before := makers
		makers = r.latest.Load().makers
		for use, rec := range makers {
			if rec.Kid != before[use].Kid {
				log.Info("a new key is in use", "use", use, "kid", rec.Kid, "before", before[use].Kid)
			}
		}

		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// logTrouble logs an error when it first occurs or changes, and when it no longer occurs.
func logTrouble(log *slog.Logger, before string, err error) (now string) {
	if err != nil {
		now = err.Error()
	}
	switch {
	case now == before:
	case err != nil:
		log.Error("maintaining the key ring; existing keys stay in use", "error", err)
	default:
		log.Info("maintaining the key ring works again")
	}
	return now
}

// Tend does everything that is due: it reads changes from other nodes, creates missing keys,
// promotes next keys, and deletes keys that were retired long ago. After a failed step, it waits
// for retryEvery before it takes further steps. Run calls it once a second. If the ring can be
// read, the error is Status().Err.
func (r *Ring) Tend(ctx context.Context) error {
	if err := r.Sync(ctx); err != nil {
		return err
	}

	now := r.c.Now()
	r.mu.Lock()
	paused := now.Before(r.retry)
	r.mu.Unlock()

	if !paused {
		err := r.step(ctx, now)
		r.mu.Lock()
		r.stepErr = err
		r.retry = time.Time{}
		if err != nil {
			r.retry = now.Add(retryEvery)
		}
		r.mu.Unlock()
	}
	return r.Status().Err
}

// retryEvery is how long to wait before a failed step is retried. The wait is long because creating
// keys is expensive.
const retryEvery = 10 * time.Second

// step takes all steps that are due. Conflicts with other nodes are not errors.
func (r *Ring) step(ctx context.Context, now time.Time) error {
	errs := []error{r.complete(ctx)}
	for _, use := range Uses() {
		if r.due(use, now) {
			_, err := r.Rotate(ctx, use, false)
			errs = append(errs, err)
		}
	}

	if before := now.Add(-Kept); r.latest.Load().hasRetiredBefore(before) {
		err := r.checkClock(ctx)
		if err == nil {
			err = errors.Join(r.c.Store.SweepRing(ctx, before), r.Sync(ctx))
		}
		errs = append(errs, err)
	}

	return errors.Join(slices.DeleteFunc(errs, func(err error) bool {
		return errors.Is(err, problem.Conflict) // another node was faster
	})...)
}

// due reports whether it is time for the next key of a use to become current.
func (r *Ring) due(use Use, now time.Time) bool {
	after := r.c.SigningRotation
	if use == Seal {
		after = r.c.SealingRotation
	}
	s := r.latest.Load()
	current, _ := s.find(use, Current)
	next, ok := s.find(use, Next)
	return ok && now.Sub(current.Activated) >= after && now.Sub(next.Created) >= r.c.Publish
}

// hasRetiredBefore reports whether any key was retired before the given time.
func (s *snapshot) hasRetiredBefore(before time.Time) bool {
	return slices.ContainsFunc(s.records, func(rec Record) bool {
		return rec.State == Retired && rec.Retired.Before(before)
	})
}
