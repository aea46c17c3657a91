package calls

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// A write may succeed although its response is lost, for example because the connection to the
// database breaks. The call or room session of such a write is an orphan: its row names this node,
// but it does not exist here, so nothing would write its end.

// orphansAfter is how long a node looks for orphans after a write has failed. The database may carry
// out the write after the node has stopped waiting for it.
const orphansAfter = time.Minute

// A doubt records when the result of a write was last unknown.
type doubt struct{ until atomic.Int64 } // Unix time in seconds

// note records that a write that adds or takes over a call or room session has failed with err.
func (d *doubt) note(err error) {
	isKnown := errors.Is(err, problem.Conflict) || errors.Is(err, ErrTaken)
	if err != nil && !isKnown {
		d.begin()
	}
}

// begin records that there may be orphans.
func (d *doubt) begin() { d.until.Store(time.Now().Add(orphansAfter).Unix()) }

// exists reports whether there may be orphans.
func (d *doubt) exists() bool { return time.Now().Unix() < d.until.Load() }

// orphans finds and ends orphans, and the calls of dead nodes.
type orphans struct{ *Calls }

// has reports whether a call that has not ended, according to the database, is an orphan. Unless the
// caller holds c.taking, has may also return true for a call that is being taken over.
func (c orphans) has(r Record) bool {
	if r.Node != c.node || c.find(r.ProjectID, r.ID) != nil {
		return false
	}
	_, waits := c.ends.find(func(end callEnd) bool { return end.Key == r.Key })
	return !waits
}

// hasRoom is like has, for a room session. The lock is c.rooms.opening.
func (c orphans) hasRoom(s RoomSession) bool {
	if s.Node != c.node || c.rooms.findSession(s.ProjectID, s.ID) != nil {
		return false
	}
	_, waits := c.rooms.ends.find(func(end RoomSession) bool { return end.ID == s.ID })
	return !waits
}

// endAll writes the ends of the orphans, if there may be any. If it cannot write all ends, the next call
// tries again.
func (c orphans) endAll(ctx context.Context) error {
	if !c.doubt.exists() {
		return nil
	}
	err := c.endCalls(ctx)
	if err == nil {
		err = c.endRooms(ctx)
	}
	c.doubt.note(err)
	return err
}

// endCalls writes the ends of calls for endAll. If there are more than reapAtOnce orphans, it may leave
// some to the next call.
func (c orphans) endCalls(ctx context.Context) error {
	running, err := c.store.RunningCalls(ctx, c.node, c.Stats().Calls+reapAtOnce)
	if err != nil {
		return err
	}
	for _, r := range running {
		isOrphan := func() bool { return c.has(r) }
		if err := c.endIf(isOrphan, func() error { return c.end(ctx, r) }); err != nil {
			return err
		}
	}
	return nil
}

// endRooms writes the ends of room sessions for endAll.
func (c orphans) endRooms(ctx context.Context) error {
	running, err := c.rooms.store.RunningRooms(ctx, c.node)
	if err != nil {
		return err
	}
	for _, s := range running {
		isOrphan := func() bool { return c.hasRoom(s) }
		if err := c.endIf(isOrphan, func() error { return c.rooms.endLost(ctx, s) }); err != nil {
			return err
		}
	}
	return nil
}

// endIf calls end if isOrphan returns true while no call is being taken over and no room is being
// opened. If endIf would have to wait for that, the next call of endAll tries again. It does not
// wait, because the node's entry must be renewed in time.
func (c orphans) endIf(isOrphan func() bool, end func() error) error {
	if !isOrphan() {
		return nil
	}
	if !c.taking.TryLock() {
		c.doubt.begin()
		return nil
	}
	defer c.taking.Unlock()
	if !c.rooms.opening.TryLock() {
		c.doubt.begin()
		return nil
	}
	defer c.rooms.opening.Unlock()

	if !isOrphan() {
		return nil
	}
	return end()
}

// end writes the end of an orphan, or of a call of a dead node. If several nodes do so, only one of
// them counts the call.
func (c orphans) end(ctx context.Context, r Record) error {
	r.State, r.Cause, r.Ended = Completed, NodeLost, r.endNow()
	written, err := c.store.EndCall(ctx, r)
	if errors.Is(err, ErrTaken) {
		return nil
	}
	if err != nil {
		return err
	}
	if written {
		c.meter.Ended(r)
	}
	return nil
}
