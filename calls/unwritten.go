package calls

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"

	"github.com/selvage/selvage/internal/problem"
)

// endsAtOnce is the maximum number of ends that write writes, so that a long list does not delay the
// other work of Run.
const endsAtOnce = 20

// unwrittenEnds holds the records of calls that have ended, but whose end is not stored yet. It is
// safe for concurrent use.
type unwrittenEnds struct {
	mu      sync.Mutex
	records []Record
}

// add remembers a call whose end could not be written.
func (u *unwrittenEnds) add(r Record) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.records = append(u.records, r)
}

// next removes and returns the record that was added first.
func (u *unwrittenEnds) next() (r Record, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.records) == 0 {
		return r, false
	}
	r = u.records[0]
	u.records = u.records[1:]
	return r, true
}

// write writes some of the ends. Otherwise, these calls would seem to run until this node dies. They
// would also count against the caps on calls through gateways.
func (u *unwrittenEnds) write(ctx context.Context, to Store, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	for range endsAtOnce {
		r, ok := u.next()
		if !ok {
			return nil
		}
		err := writeEnd(ctx, to, r, log)
		isGone := errors.Is(err, ErrTaken) || errors.Is(err, problem.NotFound) // NotFound: the project is deleted
		if err != nil && !isGone {
			u.add(r)
			return err
		}
	}
	return nil
}

// writeEnd writes the end of a call. If this panics, the end is lost, but the server continues.
func writeEnd(ctx context.Context, to Store, r Record, log *slog.Logger) error {
	defer func() {
		if cause := recover(); cause != nil {
			log.Error("panic while writing the end of a call", "call_id", r.ID,
				"error", fmt.Errorf("panic: %v\n%s", cause, debug.Stack()))
		}
	}()
	return to.SaveCall(ctx, r)
}
