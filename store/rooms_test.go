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
	hook := fabric.Webhook{ID: newID(), ProjectID: "p", URL: "https://example.com", Enabled: true,
		Events: []fabric.EventName{fabric.RoomStarted, fabric.RoomEnded, fabric.MemberJoined, fabric.MemberLeft}}
	if err := s.CreateWebhook(ctx, hook, 10); err != nil {
		t.Fatal(err)
	}
	first := calls.RoomSession{ID: newID(), ProjectID: "p", RoomID: "r", Address: "/public/r", Name: "R", Node: "n",
		Started: at}
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

	if err := s.AskEndRoom(ctx, "p", first.ID); err != nil {
		t.Fatal(err)
	}
	if all, err := s.RunningRooms(ctx, "n"); err != nil || len(all) != 1 || !all[0].Ending {
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
		fabric.RoomStarted)

	if err := s.PruneRooms(ctx, at.Add(2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	left, err := s.ListRooms(ctx, "p", calls.RoomFilter{}, page.Query{Size: 10})
	if err != nil || len(left.Items) != 1 || left.Items[0].ID != second.ID {
		t.Errorf("after PruneRooms %+v, %v remain, want the running session", left.Items, err)
	}
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
