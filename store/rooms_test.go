package store

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

func TestRoomSessions(t *testing.T) { EachDatabase(t, testRoomSessions) }

// testRoomSessions shows that a room has one session at a time, that the session's members are
// calls, and which webhook events they cause.
func testRoomSessions(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	ctx, at := t.Context(), time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)
	hook := fabric.Webhook{
		ID:        newID(),
		ProjectID: "p",
		URL:       "https://example.com",
		Enabled:   true,
		Events:    []fabric.EventName{fabric.RoomStarted, fabric.RoomEnded, fabric.MemberJoined, fabric.MemberLeft},
	}
	if err := s.CreateWebhook(ctx, hook, 10); err != nil {
		t.Fatal(err)
	}

	first := calls.RoomSession{
		ID:        newID(),
		ProjectID: "p",
		RoomID:    "r",
		Address:   "/public/r",
		Name:      "R",
		Node:      "n",
		Started:   at,
	}
	second := first
	second.ID, second.Node = newID(), "other"
	if err := s.OpenRoom(ctx, first); err != nil {
		t.Fatal(err)
	}

	if err := s.OpenRoom(ctx, second); !errors.Is(err, problem.Conflict) {
		t.Errorf("a second session of an open room returns %v, want a conflict", err)
	}
	if got, err := s.FindOpenRoom(ctx, "p", "r"); err != nil || got != first {
		t.Errorf("FindOpenRoom returns %+v, %v, want %+v", got, err, first)
	}

	if nodes, err := s.RunningNodes(ctx); err != nil || !slices.Contains(nodes, "n") {
		t.Errorf("RunningNodes returns %q, %v, want the node of the session", nodes, err)
	}

	member := callAt("p", at.Add(time.Second))
	saveCalls(t, s, member)
	member.State, member.Answered, member.RoomSession = calls.InCall, at.Add(2*time.Second), first.ID
	saveCalls(t, s, member, ended(member, calls.NormalClearing, true), ended(callAt("p", at), calls.UserBusy, false))
	members, err := s.ListCalls(ctx, "p", calls.Filter{RoomSession: first.ID}, page.Query{Size: 10})
	if err != nil || len(members.Items) != 1 || members.Items[0].ID != member.ID {
		t.Errorf("the members of the session are %+v, %v, want the call", members.Items, err)
	}

	first.Recorded, first.Locked = true, true
	if err := s.SaveRoom(ctx, first); err != nil {
		t.Fatal(err)
	}

	if got, err := s.FindRoom(ctx, "p", first.ID); err != nil || got != first {
		t.Errorf("a saved session is %+v, %v, want %+v", got, err, first)
	}
	elsewhere := first
	elsewhere.Node = "other"
	if err := s.SaveRoom(ctx, elsewhere); !errors.Is(err, calls.ErrTaken) {
		t.Errorf("saving a session of another node returns %v, want ErrTaken", err)
	}

	askOfRoom(t, s, first)
	first = moveRoom(t, s, first)
	if all, err := s.RunningRooms(ctx, first.Node); err != nil || len(all) != 1 || !all[0].Ending {
		t.Errorf("RunningRooms returns %+v, %v, want the session, which is to end", all, err)
	}

	first.Ended, first.Most = at.Add(time.Hour), 1
	if err := s.EndRoom(ctx, first); err != nil {
		t.Fatal(err)
	}

	if err := s.EndRoom(ctx, first); !errors.Is(err, problem.NotFound) {
		t.Errorf("ending a session twice returns %v, want problem.NotFound", err)
	}
	if err := s.OpenRoom(ctx, second); err != nil {
		t.Errorf("after its session ended, the room cannot be opened: %v", err)
	}
	wantEvents(t, s, hook.ID, fabric.RoomStarted, fabric.MemberJoined, fabric.MemberLeft, fabric.RoomEnded,
		fabric.RoomStarted, fabric.MemberJoined, fabric.MemberLeft)

	if err := s.PruneRooms(ctx, at.Add(2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	left, err := s.ListRooms(ctx, "p", calls.RoomFilter{}, page.Query{Size: 10})
	if err != nil || len(left.Items) != 1 || left.Items[0].ID != second.ID {
		t.Errorf("after PruneRooms %+v, %v remain, want the running session", left.Items, err)
	}
}

// askOfRoom requests a change of a session's recordings, and then the end of the session. It shows
// that the node gets the first request once, and the second one as long as the session runs.
func askOfRoom(t *testing.T, s *Store, r calls.RoomSession) {
	t.Helper()
	ctx := t.Context()
	want := calls.RoomRequest{ProjectID: r.ProjectID, RoomID: r.RoomID, Session: r.ID, Record: true}
	for _, ask := range []func() error{
		func() error { return s.AskRecordRoom(ctx, r.ProjectID, r.ID) },
		func() error { return s.AskEndRoom(ctx, r.ProjectID, r.ID) },
	} {
		if err := ask(); err != nil {
			t.Fatal(err)
		}
		if got, err := s.TakeRoomRequests(ctx, r.Node); err != nil || !slices.Equal(got, []calls.RoomRequest{want}) {
			t.Errorf("TakeRoomRequests returns %+v, %v, want %+v", got, err, want)
		}
		want.Record, want.End = false, true
	}

	if got, err := s.TakeRoomRequests(ctx, r.Node); err != nil || !slices.Equal(got, []calls.RoomRequest{want}) {
		t.Errorf("a second time, TakeRoomRequests returns %+v, %v, want %+v", got, err, want)
	}
	if err := s.AskRecordRoom(ctx, r.ProjectID, newID()); !errors.Is(err, problem.NotFound) {
		t.Errorf("a request for an unknown session returns %v, want problem.NotFound", err)
	}
}

// moveRoom makes another node take over a session, and returns the session. It shows that the new
// node gets the running calls of the members, and that the first node can no longer change the
// session.
func moveRoom(t *testing.T, s *Store, r calls.RoomSession) calls.RoomSession {
	t.Helper()
	ctx := t.Context()
	member := callAt("p", r.Started)
	member.State, member.Answered, member.RoomSession = calls.InCall, r.Started.Add(time.Minute), r.ID
	saveCalls(t, s, member)
	there := member
	there.Node = "other"
	if got, err := s.TakeRoom(ctx, r, there.Node); err != nil || !slices.Equal(got, []calls.Record{there}) {
		t.Errorf("TakeRoom returns %+v, %v, want the running call %+v", got, err, there)
	}

	if _, err := s.TakeRoom(ctx, r, "third"); !errors.Is(err, calls.ErrTaken) {
		t.Errorf("taking a session that was taken over returns %v, want ErrTaken", err)
	}
	r.Ended = r.Started.Add(time.Hour)
	if err := s.EndRoom(ctx, r); !errors.Is(err, problem.NotFound) {
		t.Errorf("the end of a session that was taken over returns %v, want problem.NotFound", err)
	}

	if err := s.SaveCall(ctx, ended(member, calls.NormalClearing, true)); !errors.Is(err, calls.ErrTaken) {
		t.Errorf("the end of a member that was taken over returns %v, want ErrTaken", err)
	}
	saveCalls(t, s, ended(there, calls.NormalClearing, true))
	r.Node, r.Ended = there.Node, time.Time{}
	return r
}

// wantEvents fails the test unless these events are queued for a webhook, in any order.
func wantEvents(t *testing.T, s *Store, webhook string, want ...fabric.EventName) {
	t.Helper()
	rows, err := gather(t.Context(), s.read(), "listing events", scanID,
		`SELECT event FROM webhook_deliveries WHERE webhook_id = $1 ORDER BY queued, created`, webhook)
	if err != nil {
		t.Fatal(err)
	}

	var got []fabric.EventName
	for _, name := range rows {
		got = append(got, fabric.EventName(name))
	}

	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the queued events are %q, want %q", got, want)
	}
}
