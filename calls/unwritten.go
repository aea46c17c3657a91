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

// maxWrites is the maximum number of records that write saves each time. Without it, a long list
// would delay the other work of Run.
const maxWrites = 20

// unwrittenEnds is a queue of the records of calls that have ended, but whose end could not be
// saved yet. While the saved record lacks its end, the call seems to continue, and it counts
// against the limits on calls through gateways. unwrittenEnds is safe for concurrent use.
type unwrittenEnds struct {
	mu      sync.Mutex
	records []Record
}

// add appends the record of a call that has ended.
func (u *unwrittenEnds) add(r Record) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.records = append(u.records, r)
}

// next removes and returns the first record. ok is false if no record is left.
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

// write saves up to maxWrites records. If a record cannot be saved, write puts it back at the end
// of the queue and returns the error.
func (u *unwrittenEnds) write(ctx context.Context, to Store, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	for range maxWrites {
		r, ok := u.next()
		if !ok {
			return nil
		}

		err := saveEnd(ctx, to, r, log)
		if err != nil && !isObsolete(err) {
			u.add(r)
			return err
		}
	}
	return nil
}

// isObsolete reports whether an error of SaveCall means that the record no longer has to be saved:
// another node has taken over the call, or the project was deleted.
func isObsolete(err error) bool {
	return errors.Is(err, ErrTaken) || errors.Is(err, problem.NotFound)
}

// saveEnd saves a record. If the store panics, saveEnd logs the panic and returns nil, so that the
// record is dropped and the server continues.
func saveEnd(ctx context.Context, to Store, r Record, log *slog.Logger) error {
	defer func() {
		if cause := recover(); cause != nil {
			log.Error("panic while writing the end of a call", "call_id", r.ID,
				"error", fmt.Errorf("panic: %v\n%s", cause, debug.Stack()))
		}
	}()
	return to.SaveCall(ctx, r)
}
