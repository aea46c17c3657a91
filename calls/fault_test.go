package calls

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"
)

// TestFault shows that a panic in one call discards only that call. The client whose command caused
// the panic gets an error. The calls have no store, so they cannot end normally.
func TestFault(t *testing.T) {
	c := New(Config{})
	faulty, other := newBareCall(c, "1"), newBareCall(c, "2")
	faulty.record.State = InCall
	recorded := &endedRecording{}
	faulty.recordings.bySid = map[string]Recording{"sid": recorded}
	faulty.inRoom = &room{mailbox: faulty.box.Load(), calls: c, members: []*call{faulty, other}}

	panicIn(t, faulty)

	stats := c.Stats()
	if stats.Calls != 1 {
		t.Errorf("%d calls are left, want 1", stats.Calls)
	}
	if stats.Legs != 1 {
		t.Errorf("%d legs are left, want 1", stats.Legs)
	}
	if c.calls[other.key()] != other {
		t.Error("the other call is gone, want it to remain")
	}
	if left := faulty.inRoom.members; !slices.Equal(left, []*call{other}) {
		t.Errorf("the members of the room are %v, want only the other call", left)
	}
	if faulty.state != Completed {
		t.Errorf("the faulty call is %s, want %s", faulty.state, Completed)
	}
	if !faulty.legs[0].ended {
		t.Error("the leg of the faulty call has not ended")
	}
	if !recorded.ended {
		t.Error("the recording of the faulty call has not ended")
	}

	waiting := c.ends.first(1)
	if len(waiting) == 0 {
		t.Fatal("the end of the faulty call will not be written")
	}
	left := waiting[0]
	if left.Cause != TemporaryFailure {
		t.Errorf("the faulty call will have ended with %v, want %v", left.Cause, TemporaryFailure)
	}
	if left.Ended.IsZero() {
		t.Error("the record of the faulty call has no end")
	}
	panics := func(ctx context.Context, end callEnd) error { return end.save(ctx, c.store) } // there is no store
	if err := c.ends.write(context.Background(), c.log, panics); err != nil {
		t.Errorf("writing the ends of calls = %v, want no error", err)
	}
	if len(c.ends.first(1)) > 0 {
		t.Error("an end whose writing panicked will be written again")
	}
}

// panicIn causes a panic in a call, and checks the results of this command and of the next one.
func panicIn(t *testing.T, faulty *call) {
	t.Helper()
	_, err := faulty.do(context.Background(), func() (Reply, error) { panic("a fault") })
	if !errors.Is(err, errFault) {
		t.Errorf("the command that panicked returned %v, want %v", err, errFault)
	}
	if _, err := faulty.do(context.Background(), func() (Reply, error) { return Reply{}, nil }); err != nil {
		t.Errorf("a command after the fault returned %v, want no error", err)
	}
}

// An endedRecording is a recording that records whether it was stopped.
type endedRecording struct {
	Recording
	ended bool
}

func (r *endedRecording) Stop() { r.ended = true }

// A faultyRecording is a recording that panics when it ends.
type faultyRecording struct{ Recording }

func (faultyRecording) Stop() { panic("a fault of the recording") }

// TestFaultInRecording shows that the server continues if a recording of a discarded call panics.
// The call is discarded completely.
func TestFaultInRecording(t *testing.T) {
	c := New(Config{})
	faulty := newBareCall(c, "1")
	faulty.record.State = InCall
	faulty.recordings.bySid = map[string]Recording{"sid": faultyRecording{}}

	panicIn(t, faulty)
	stats := c.Stats()
	if stats.Calls != 0 {
		t.Errorf("%d calls are left, want none", stats.Calls)
	}
	if stats.Legs != 0 {
		t.Errorf("%d legs are left, want none", stats.Legs)
	}
	if len(c.ends.first(1)) == 0 {
		t.Error("the end of the faulty call will not be written")
	}
}

// newBareCall returns a call that has one leg and no media.
func newBareCall(c *Calls, id string) *call {
	never := time.NewTimer(time.Hour)
	k := &call{calls: c, id: id, state: InCall, ringTimer: never, endTimer: never}
	k.box.Store(&mailbox{})
	k.visible.Store(InCall)
	l := &leg{call: k, id: id, counted: []account{{id: id}}}
	l.at.Store(Socket{})
	k.addLeg(l)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[k.key()] = k
	return k
}
