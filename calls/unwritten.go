package calls

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/selvage/selvage/internal/problem"
)

// endsAtOnce is the maximum number of ends that writeEnds writes, so that a long list does not
// delay the other work of Run.
const endsAtOnce = 20

// addUnwritten remembers a call whose end could not be written.
func (c *Calls) addUnwritten(r Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unwritten = append(c.unwritten, r)
}

// writeEnds writes the ends of some calls that could not be written before. Otherwise, these calls
// would seem to run until this node dies. They would also count against the caps on calls through
// gateways.
func (c *Calls) writeEnds(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	for range endsAtOnce {
		r, ok := c.nextUnwritten()
		if !ok {
			return nil
		}
		err := c.writeEnd(ctx, r)
		isGone := errors.Is(err, ErrTaken) || errors.Is(err, problem.NotFound) // NotFound: the project is deleted
		if err != nil && !isGone {
			c.addUnwritten(r)
			return err
		}
	}
	return nil
}

// writeEnd writes the end of a call. If this panics, the end is lost, but the server continues.
func (c *Calls) writeEnd(ctx context.Context, r Record) error {
	defer func() {
		if cause := recover(); cause != nil {
			c.log.Error("panic while writing the end of a call", "call_id", r.ID,
				"error", fmt.Errorf("panic: %v\n%s", cause, debug.Stack()))
		}
	}()
	return c.store.SaveCall(ctx, r)
}

// nextUnwritten removes and returns the first call whose end could not be written.
func (c *Calls) nextUnwritten() (r Record, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.unwritten) == 0 {
		return r, false
	}
	r = c.unwritten[0]
	c.unwritten = c.unwritten[1:]
	return r, true
}
