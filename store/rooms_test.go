package store

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/database"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

func TestRoomSessions(t *testing.T) { EachDatabase(t, testRoomSessions) }

// testRoomSessions shows that a room has one session at a time, that the session's members are
// calls, and which webhook events the session and its members cause.
func testRoomSessions(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	ctx := t.Context()
	at := time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)
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
	second.ID = newID()
	second.Node = "other"
	if err := s.OpenRoom(ctx, first); err != nil {
		t.Fatal(err)
	}

	if err := s.OpenRoom(ctx, second); !errors.Is(err, problem.Conflict) {
		t.Errorf("opening an open room returns %v, want a conflict", err)
	}
	open, err := s.FindOpenRoom(ctx, "p", "r")
	if err != nil || open != first {
		t.Errorf("FindOpenRoom returns %+v, %v, want %+v", open, err, first)
	}

	nodes, err := s.RunningNodes(ctx)
	if err != nil || !slices.Contains(nodes, "n") {
		t.Errorf("RunningNodes returns %q, %v, want the node %q of the session", nodes, err, "n")
	}

	member := callAt("p", at.Add(time.Second))
	saveCalls(t, s, member)
	member.State, member.Answered = calls.InCall, at.Add(2*time.Second)
	member.RoomSession = first.ID
	elsewhere := callAt("p", at)
	saveCalls(t, s, member, ended(member, calls.NormalClearing, true), ended(elsewhere, calls.UserBusy, false))
	members, err := s.ListCalls(ctx, "p", calls.Filter{RoomSession: first.ID}, page.Query{Size: 10})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := callIDs(members.Items), []string{member.ID}; !slices.Equal(got, want) {
		t.Errorf("the members of the session are the calls %q, want %q", got, want)
	}

	first.Recorded = true
	first.Locked = true
	if err := s.SaveRoom(ctx, first); err != nil {
		t.Fatal(err)
	}

	saved, err := s.FindRoom(ctx, "p", first.ID)
	if err != nil || saved != first {
		t.Errorf("a saved session is %+v, %v, want %+v", saved, err, first)
	}
	ofAnother := first
	ofAnother.Node = "other"
	if err := s.SaveRoom(ctx, ofAnother); !errors.Is(err, calls.ErrTaken) {
		t.Errorf("saving a session of another node returns %v, want ErrTaken", err)
	}

	askOfRoom(t, s, first)
	first = moveRoom(t, s, first)
	running, err := s.RunningRooms(ctx, first.Node)
	if err != nil {
		t.Fatal(err)
	}
	if len(running) != 1 {
		t.Fatalf("RunningRooms returns %+v, want only the session", running)
	}
	if !running[0].Ending {
		t.Error("RunningRooms returns the session without the request to end it")
	}

	first.Ended = at.Add(time.Hour)
	first.Most = 1
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
	if err != nil {
		t.Fatal(err)
	}
	if len(left.Items) != 1 {
		t.Fatalf("after PruneRooms %+v remain, want the running session", left.Items)
	}
	if got := left.Items[0].ID; got != second.ID {
		t.Errorf("after PruneRooms the session %s remains, want the running one, %s", got, second.ID)
	}
}

// askOfRoom requests a change of a session's recordings, and then the end of the session. It shows
// that the node gets the first request once, and the second one as long as the session runs.
func askOfRoom(t *testing.T, s *Store, r calls.RoomSession) {
	t.Helper()
	ctx := t.Context()
	request := calls.RoomRequest{ProjectID: r.ProjectID, RoomID: r.RoomID, Session: r.ID}
	toRecord, toEnd := request, request
	toRecord.Record = true
	toEnd.End = true
	wantRequest := func(want calls.RoomRequest) {
		t.Helper()
		got, err := s.TakeRoomRequests(ctx, r.Node)
		if err != nil || !slices.Equal(got, []calls.RoomRequest{want}) {
			t.Errorf("TakeRoomRequests returns %+v, %v, want %+v", got, err, want)
		}
	}

	if err := s.AskRecordRoom(ctx, r.ProjectID, r.ID); err != nil {
		t.Fatal(err)
	}
	wantRequest(toRecord)
	if err := s.AskEndRoom(ctx, r.ProjectID, r.ID); err != nil {
		t.Fatal(err)
	}
	wantRequest(toEnd)
	wantRequest(toEnd)
	if err := s.AskRecordRoom(ctx, r.ProjectID, newID()); !errors.Is(err, problem.NotFound) {
		t.Errorf("a request for an unknown session returns %v, want problem.NotFound", err)
	}
}

// An interruptedDB calls before when the next change without a transaction begins, and then never again.
type interruptedDB struct {
	database.DB
	before func()
}

func (d *interruptedDB) Once(ctx context.Context, do func(database.Tx) error) error {
	if before := d.before; before != nil {
		d.before = nil
		before()
	}
	return d.DB.Once(ctx, do)
}

// TestRoomRequestMeanwhile shows that a request for a session remains if it is made after the
// requests of other sessions were read, and before their marks are deleted. A request also remains if
// another node takes over the session in the meantime.
func TestRoomRequestMeanwhile(t *testing.T) { EachDatabase(t, testRoomRequestMeanwhile) }

func testRoomRequestMeanwhile(t *testing.T, c Config) {
	db := new(interruptedDB)
	c.Wrap = func(d database.DB) database.DB {
		db.DB = d
		return db
	}
	s, _, _ := grantRows(t, c)
	ctx := t.Context()
	var sessions []calls.RoomSession
	for _, room := range []string{"r", "q"} {
		r := calls.RoomSession{ID: newID(), ProjectID: "p", RoomID: room, Node: "n", Started: time.Now()}
		if err := s.OpenRoom(ctx, r); err != nil {
			t.Fatal(err)
		}
		sessions = append(sessions, r)
	}

	ask := func(r calls.RoomSession) {
		if err := s.AskRecordRoom(ctx, "p", r.ID); err != nil {
			t.Error(err)
		}
	}
	ask(sessions[0])
	db.before = func() { ask(sessions[1]) }
	for _, r := range sessions {
		got, err := s.TakeRoomRequests(ctx, "n")
		want := []calls.RoomRequest{{ProjectID: "p", RoomID: r.RoomID, Session: r.ID, Record: true}}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("TakeRoomRequests returns %+v, %v, want %+v", got, err, want)
		}
	}

	moved := sessions[0]
	ask(moved)
	db.before = func() {
		if _, err := s.TakeRoom(ctx, moved, "other"); err != nil {
			t.Error(err)
		}
	}
	for _, node := range []string{"n", "other"} {
		got, err := s.TakeRoomRequests(ctx, node)
		want := []calls.RoomRequest{{ProjectID: "p", RoomID: moved.RoomID, Session: moved.ID, Record: true}}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("TakeRoomRequests of the node %s returns %+v, %v, want %+v", node, got, err, want)
		}
	}
}

// moveRoom makes another node take over a session, and returns the session. It shows that the new
// node gets the running calls of the members, and that the first node can no longer change the
// session.
func moveRoom(t *testing.T, s *Store, r calls.RoomSession) calls.RoomSession {
	t.Helper()
	ctx := t.Context()
	member := callAt("p", r.Started)
	member.State, member.Answered = calls.InCall, r.Started.Add(time.Minute)
	member.RoomSession = r.ID
	saveCalls(t, s, member)
	there := member
	there.Node = "other"
	taken, err := s.TakeRoom(ctx, r, there.Node)
	if err != nil || !slices.Equal(taken, []calls.Record{there}) {
		t.Errorf("TakeRoom returns %+v, %v, want the running call %+v", taken, err, there)
	}

	if _, err := s.TakeRoom(ctx, r, "third"); !errors.Is(err, calls.ErrTaken) {
		t.Errorf("taking a session that was taken over returns %v, want ErrTaken", err)
	}
	r.Ended = r.Started.Add(time.Hour)
	if err := s.EndRoom(ctx, r); !errors.Is(err, problem.NotFound) {
		t.Errorf("ending a session that was taken over returns %v, want problem.NotFound", err)
	}

	if err := s.SaveCall(ctx, ended(member, calls.NormalClearing, true)); !errors.Is(err, calls.ErrTaken) {
		t.Errorf("ending a call that was taken over returns %v, want ErrTaken", err)
	}
	saveCalls(t, s, ended(there, calls.NormalClearing, true))
	r.Node, r.Ended = there.Node, time.Time{}
	return r
}

// TestTakeRoomUndone shows that a node that cannot take over the calls of the members does not take
// over the session either, so that it can try again.
func TestTakeRoomUndone(t *testing.T) { EachDatabase(t, testTakeRoomUndone) }

func testTakeRoomUndone(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	ctx := t.Context()
	at := time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)
	session := calls.RoomSession{ID: newID(), ProjectID: "p", RoomID: "r", Node: "n", Started: at}
	if err := s.OpenRoom(ctx, session); err != nil {
		t.Fatal(err)
	}
	member := callAt("p", at)
	member.State, member.Answered = calls.InCall, at
	member.RoomSession = session.ID
	saveCalls(t, s, member)

	create := []string{`CREATE TRIGGER refused BEFORE UPDATE OF node ON calls
		BEGIN SELECT RAISE(ABORT, 'refused'); END`}
	drop := `DROP TRIGGER refused`
	if database.IsServer(c.URL) {
		create = []string{
			`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''refused''; END'`,
			`CREATE TRIGGER refused BEFORE UPDATE OF node ON calls FOR EACH ROW EXECUTE FUNCTION refuse()`,
		}
		drop = `DROP TRIGGER refused ON calls`
	}
	filled(t, c, s, create...)
	if _, err := s.TakeRoom(ctx, session, "other"); err == nil || errors.Is(err, calls.ErrTaken) {
		t.Errorf("while calls cannot be changed, TakeRoom returns %v, want the error of the database", err)
	}

	filled(t, c, s, drop)
	taken, err := s.TakeRoom(ctx, session, "other")
	if err != nil {
		t.Fatalf("TakeRoom after a failure = %v", err)
	}
	if got, want := callIDs(taken), []string{member.ID}; !slices.Equal(got, want) {
		t.Errorf("TakeRoom after a failure returns the calls %q, want %q", got, want)
	}
}

// wantEvents fails the test unless these events are queued for a webhook, in any order.
func wantEvents(t *testing.T, s *Store, webhook string, want ...fabric.EventName) {
	t.Helper()
	names, err := gather(t.Context(), s.read(), "listing events", scanID,
		`SELECT event FROM webhook_deliveries WHERE webhook_id = $1 ORDER BY queued, created`, webhook)
	if err != nil {
		t.Fatal(err)
	}

	var got []fabric.EventName
	for _, name := range names {
		got = append(got, fabric.EventName(name))
	}

	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the queued events are %q, want %q", got, want)
	}
}
