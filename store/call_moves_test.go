package store

import (
	"errors"
	"testing"
	"time"

	"github.com/selvage/selvage/calls"
)

// TestSaveMove shows that SaveMove writes only the room session of a call and when the call joined it,
// and only if the call is running on this node.
func TestSaveMove(t *testing.T) { EachDatabase(t, testSaveMove) }

func testSaveMove(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	ctx := t.Context()
	at := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	talks := callAt("p", at)
	talks.State, talks.Answered = calls.InCall, at.Add(time.Second)
	talks.CalleeLeg = newID()
	saveCalls(t, s, talks)
	session := calls.RoomSession{ID: newID(), ProjectID: "p", RoomID: "r", Node: "n", Started: at}

	in := talks
	in.RoomSession = session.ID
	in.Joined = at.Add(time.Minute)
	in.To.Name = "not written"
	if err := s.SaveMove(ctx, in, calls.RoomChange{Session: session, By: "alice"}); err != nil {
		t.Fatalf("moving in: %v", err)
	}
	moved := talks
	moved.RoomSession = in.RoomSession
	moved.Joined = in.Joined
	wantCall(t, s, "after the move", moved)

	members, err := s.TakeRoom(ctx, session, "other")
	if !errors.Is(err, calls.ErrTaken) {
		t.Errorf("taking a session without a row = %v, want %v", err, calls.ErrTaken)
	}
	if len(members) != 0 {
		t.Errorf("taking a session without a row returns the calls %+v, want none", members)
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
		t.Errorf("moving a call that has ended = %v, want nil", err)
	}

	wantCall(t, s, "after it has ended", over)
}
