package store

import (
	"errors"
	"testing"
	"time"

	"github.com/selvage/selvage/calls"
)

// TestSaveMove shows that a move changes only the session of a running call that this node carries,
// and that it queues webhook events and is audited.
func TestSaveMove(t *testing.T) { EachDatabase(t, testSaveMove) }

func testSaveMove(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	ctx, at := t.Context(), time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	talks := callAt("p", at)
	talks.State, talks.Answered, talks.CalleeLeg = calls.InCall, at.Add(time.Second), newID()
	saveCalls(t, s, talks)
	session := calls.RoomSession{ID: newID(), ProjectID: "p", RoomID: "r", Node: "n", Started: at}

	in := talks
	in.RoomSession, in.Joined, in.To.Name = session.ID, at.Add(time.Minute), "not written"
	if err := s.SaveMove(ctx, in, calls.RoomChange{Session: session, By: "alice"}); err != nil {
		t.Fatalf("moving in: %v", err)
	}
	want := talks
	want.RoomSession, want.Joined = in.RoomSession, in.Joined
	if got, err := s.FindCall(ctx, "p", talks.ID); err != nil || got != want {
		t.Errorf("after the move, the call is %+v, %v, want %+v", got, err, want)
	}
	members, err := s.TakeRoom(ctx, session, "other")
	if !errors.Is(err, calls.ErrTaken) || len(members) != 0 {
		t.Errorf("taking a session without a row = %v, %v, want %v", members, err, calls.ErrTaken)
	}

	elsewhere := talks
	elsewhere.Node = "other"
	if err := s.SaveMove(ctx, elsewhere, calls.RoomChange{Session: session}); !errors.Is(err, calls.ErrTaken) {
		t.Errorf("a move by another node = %v, want %v", err, calls.ErrTaken)
	}

	out := calls.RoomChange{Session: session, Joined: in.Joined, Left: at.Add(2 * time.Minute)}
	if err := s.SaveMove(ctx, talks, out); err != nil {
		t.Fatalf("moving out: %v", err)
	}

	over := ended(talks, calls.NormalClearing, true)
	over.Answered = talks.Answered
	saveCalls(t, s, over)
	if err := s.SaveMove(ctx, in, calls.RoomChange{Session: session}); err != nil {
		t.Errorf("moving a call that has ended = %v, want nothing to happen", err)
	}

	if got, err := s.FindCall(ctx, "p", talks.ID); err != nil || got != over {
		t.Errorf("at last, the call is %+v, %v, want %+v", got, err, over)
	}
}
