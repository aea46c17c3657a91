package calls

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestFault shows that a panic in one call discards only that call. The client whose command caused
// the panic gets an error. The calls have no store, so they cannot end normally.
func TestFault(t *testing.T) {
	all := New(Config{})
	faulty, other := newBareCall(all, "1"), newBareCall(all, "2")
	faulty.inRoom = &room{mailbox: faulty.box.Load(), calls: all, members: []*call{faulty, other}}

	_, err := faulty.do(context.Background(), func() (Reply, error) { panic("a fault") })
	if !errors.Is(err, errFault) {
		t.Errorf("a command that met a fault returned %v, want %v", err, errFault)
	}
	if _, err := faulty.do(context.Background(), func() (Reply, error) { return Reply{}, nil }); err != nil {
		t.Errorf("a command after the fault returned %v, want no error", err)
	}

	if s := all.Stats(); s.Calls != 1 || s.Legs != 1 || all.calls[other.key()] != other {
		t.Errorf("%d calls and %d legs are left, want those of the other call", s.Calls, s.Legs)
	}
	if left := faulty.inRoom.members; len(left) != 1 || left[0] != other {
		t.Errorf("%d members of the room are left, want the other call", len(left))
	}
	if faulty.state != Completed || !faulty.legs[0].ended {
		t.Errorf("the faulty call is %s, want %s", faulty.state, Completed)
	}
}

// newBareCall returns a call that has one leg and no media.
func newBareCall(all *Calls, id string) *call {
	never := time.NewTimer(time.Hour)
	k := &call{calls: all, id: id, state: InCall, ringTimer: never, endTimer: never}
	k.box.Store(&mailbox{})
	k.visible.Store(InCall)
	l := &leg{call: k, id: id, counted: []account{{id: id}}}
	l.at.Store(Socket{})
	k.addLeg(l)
	all.mu.Lock()
	defer all.mu.Unlock()
	all.calls[k.key()] = k
	return k
}
