package calls

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/selvage/selvage/internal/problem"
)

// maxWrites is the maximum number of records that write saves each time. Without it, a long list
// would delay the other work of Run.
const maxWrites = 20

// unwritten is a queue of the records of calls or room sessions that have ended, but whose end could
// not be saved yet. While the saved record lacks its end, the call or session seems to continue, and a
// call counts against the limits on calls through gateways. unwritten is safe for concurrent use, but
// only one goroutine may use write.
type unwritten[T any] struct {
	mu      sync.Mutex
	ends    []T
	failing bool // see isFailing
	hurried bool // see hurry
}

// add appends the record of a call or session that has ended.
func (u *unwritten[T]) add(end T) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ends = append(u.ends, end)
	u.failing = true
}

// isFailing reports whether no record was saved since the last one was added.
func (u *unwritten[T]) isFailing() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.failing
}

// hurry makes writeAll save all records without a pause, because the server is stopping.
func (u *unwritten[T]) hurry() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.hurried = true
}

// isHurried reports whether hurry was called and records are waiting.
func (u *unwritten[T]) isHurried() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.hurried && len(u.ends) > 0
}

// count returns the number of records in the queue.
func (u *unwritten[T]) count() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.ends)
}

// first returns up to n records from the beginning of the queue.
func (u *unwritten[T]) first(n int) []T {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.ends[:min(n, len(u.ends))])
}

// find returns the first record in the queue that matches. ok is false if no record matches.
func (u *unwritten[T]) find(matches func(T) bool) (end T, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	i := slices.IndexFunc(u.ends, matches)
	if i < 0 {
		return end, false
	}
	return u.ends[i], true
}

// removeFirst removes the first record. If again is true, it appends the record to the queue.
func (u *unwritten[T]) removeFirst(again bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	end := u.ends[0]
	u.ends = u.ends[1:]
	if again {
		u.ends = append(u.ends, end)
	} else {
		u.failing = false
	}
}

// write saves up to maxWrites records with save. If a record cannot be saved, write moves it to the end
// of the queue and returns the error. A record remains in the queue until it is saved.
func (u *unwritten[T]) write(ctx context.Context, log *slog.Logger, save func(context.Context, T) error) error {
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	for _, end := range u.first(maxWrites) {
		err := recovered(log, func() error { return save(ctx, end) })
		failed := err != nil && !isObsolete(err)
		u.removeFirst(failed)
		if failed {
			return err
		}
	}
	return nil
}

// writeAll is like write. After hurry was called, it continues until the queue is empty or an error occurs.
func (u *unwritten[T]) writeAll(
	ctx context.Context, log *slog.Logger, save func(context.Context, T) error,
) error {
	err := u.write(ctx, log, save)
	for err == nil && u.isHurried() {
		err = u.write(ctx, log, save)
	}
	return err
}

// isObsolete reports whether an error means that a record no longer has to be saved: its end is saved,
// another node has taken over the call or session, or the project was deleted.
func isObsolete(err error) bool {
	return errors.Is(err, ErrTaken) || errors.Is(err, problem.NotFound)
}

// recovered calls save. If save panics, recovered logs the panic and returns nil, so that the record is
// dropped and the server continues.
func recovered(log *slog.Logger, save func() error) error {
	defer func() {
		if cause := recover(); cause != nil {
			log.Error("panic while writing the end of a call or room session",
				"error", fmt.Errorf("panic: %v\n%s", cause, debug.Stack()))
		}
	}()
	return save()
}
