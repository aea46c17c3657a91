package callstest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/store"
)

// TestMove shows that a call moves into a room with both sides, and out again, and that each client
// is notified. The ids and the record remain the same.
func TestMove(t *testing.T) {
	m := newMeeting(t)
	host := m.guest().join()
	session := m.lastJoined(host).RoomSession
	p := m.talk("ada", "bob")
	before := p.call()

	if err := p.callee.move(lobby); err != nil {
		t.Fatalf("moving into the room: %v", err)
	}
	everybody := []string{host.leg, p.caller.leg, p.callee.leg}
	for _, side := range []*member{p.caller, p.callee} {
		if got := m.lastJoined(side).RoomSession; got != session {
			t.Errorf("after the move, a side is in session %s, want %s", got, session)
		}
		if got := m.membersIn(side); !slices.Equal(got, everybody) {
			t.Errorf("after the move, a side sees the members %v, want %v", got, everybody)
		}
	}
	m.wasSent(host, calls.MemberJoined, 2)
	p.recordHas(func(want *calls.Record) {
		want.Key = before.Key
		want.RoomSession = session
	})
	joined := p.call().Joined
	if joined.Before(before.Answered) {
		t.Errorf("the call joined the room at %v, want a time after its answer at %v", joined, before.Answered)
	}

	rooms := calls.NewRooms(m.store, m.store)
	members := must[page.Page[calls.Record]](t)(
		rooms.Members(t.Context(), m.project, session, page.Query{Size: 10})).Items
	if len(members) != 2 {
		t.Errorf("the session has %d members, want the host and the call", len(members))
	}
	isCall := func(r calls.Record) bool { return r.Joined.Equal(joined) }
	if !slices.ContainsFunc(members, isCall) {
		t.Errorf("the session has the members %+v, want one that joined at %v", members, joined)
	}

	if err := p.caller.move(""); err != nil {
		t.Fatalf("moving out of the room: %v", err)
	}
	both := []string{p.caller.leg, p.callee.leg}
	for _, side := range []*member{p.caller, p.callee} {
		if got := m.lastJoined(side).RoomSession; got == session {
			t.Errorf("after moving out, a side is still in session %s", got)
		}
		if got := m.membersIn(side); !slices.Equal(got, both) {
			t.Errorf("after moving out, a side sees the members %v, want %v", got, both)
		}
	}

	m.wasSent(host, calls.MemberLeft, 2)
	p.callee.do(calls.Command{Op: calls.Hangup})
	p.recordHas(func(want *calls.Record) {
		want.State = calls.Completed
		want.RoomSession = ""
		want.Answered = before.Answered
	})
	m.wasSent(p.caller, calls.HungUp, 1)
}

// TestMoveLast shows that each side may leave the room by itself. The call ends with its last side,
// and the room session ends with its last member.
func TestMoveLast(t *testing.T) {
	for name, first := range map[string]func(pair) (*member, *member){
		"caller": func(p pair) (*member, *member) { return p.caller, p.callee },
		"callee": func(p pair) (*member, *member) { return p.callee, p.caller },
	} {
		t.Run(name, func(t *testing.T) {
			m := newMeeting(t)
			p := m.talk("ada", "bob")
			if err := m.calls.Move(t.Context(), m.project, p.caller.leg, lobby); err != nil {
				t.Fatalf("moving into an empty room: %v", err)
			}

			session := m.lastJoined(p.caller).RoomSession
			leaver, other := first(p)
			leaver.do(calls.Command{Op: calls.Hangup})
			m.wasSent(other, calls.MemberLeft, 1)
			if got := p.call().State; got != calls.InCall {
				t.Errorf("after one side has left, the call is %s, want %s", got, calls.InCall)
			}
			if err := other.move(""); !errors.Is(err, problem.Conflict) {
				t.Errorf("moving out alone = %v, want %v", err, problem.Conflict)
			}

			other.do(calls.Command{Op: calls.Hangup})
			if got := p.call().State; got != calls.Completed {
				t.Errorf("after both sides have left, the call is %s, want %s", got, calls.Completed)
			}
			room := must[calls.RoomSession](t)(m.store.FindRoom(t.Context(), m.project, session))
			if room.Ended.IsZero() {
				t.Error("after both sides have left, the room session has not ended")
			}
			if room.Most != 2 {
				t.Errorf("the room session had %d members, want 2", room.Most)
			}
		})
	}
}

// TestMoveRefused shows which calls cannot move, and which rooms refuse them. Refused calls
// continue.
func TestMoveRefused(t *testing.T) {
	m := newMeeting(t)
	p := m.talk("ada", "bob")
	echo, host := m.subscriber("echo"), m.subscriber("host").join()
	echo.do(calls.Command{Op: calls.Invite, To: calls.EchoAddress, SDP: offer})
	host.do(calls.Command{Op: calls.Lock})
	stranger := m.client(fabric.Token{Kind: fabric.Guest})
	stranger.leg = p.caller.leg

	for name, tt := range map[string]struct {
		got  error
		want error
	}{
		"locked":      {p.caller.move(lobby), problem.Conflict},
		"no address":  {p.caller.move("/public/nowhere"), problem.Invalid},
		"no room":     {p.caller.move("/private/bob"), problem.Invalid},
		"a number":    {p.caller.move("+4930123456"), problem.Invalid},
		"not inside":  {p.caller.move(""), problem.Conflict},
		"echo":        {echo.move(lobby), problem.Conflict},
		"dialed":      {host.move(""), problem.Conflict},
		"twice":       {host.move(lobby), problem.Conflict},
		"unknown":     {m.calls.Move(t.Context(), m.project, uuid.NewString(), lobby), problem.NotFound},
		"no id":       {m.calls.Move(t.Context(), m.project, "call", lobby), problem.NotFound},
		"other owner": {m.calls.Move(t.Context(), uuid.NewString(), p.caller.leg, lobby), problem.NotFound},
	} {
		if !errors.Is(tt.got, tt.want) {
			t.Errorf("%s: moving = %v, want %v", name, tt.got, tt.want)
		}
	}

	if err := stranger.move(lobby); err != nil {
		t.Errorf("a stranger's move = %v, want no error", err)
	}
	m.wasSent(stranger, calls.HungUp, 1)
	m.wasSent(p.caller, calls.Joined, 1)
	p.recordHas(func(want *calls.Record) {
		want.State = calls.InCall
		want.RoomSession = ""
	})
}

// A hookedStore is a store that calls a function after it has opened a room session.
type hookedStore struct {
	*store.Store
	opened func()
}

func (s *hookedStore) OpenRoom(ctx context.Context, r calls.RoomSession) error {
	err := s.Store.OpenRoom(ctx, r)
	s.opened()
	return err
}

// TestMoveEnded shows that no room remains open for a call that ends before it has moved there.
func TestMoveEnded(t *testing.T) {
	rows := &hookedStore{}
	m := newMeeting(t, func(c *calls.Config) {
		rows.Store = c.Store.(*store.Store)
		c.Rooms = rows
	})
	p := m.talk("ada", "bob")
	rows.opened = func() { p.callee.do(calls.Command{Op: calls.Hangup}) }
	if err := p.caller.move(lobby); !errors.Is(err, problem.Conflict) {
		t.Errorf("moving a call that ends = %v, want %v", err, problem.Conflict)
	}

	rooms := calls.NewRooms(m.store, m.store)
	eventually(t, "the room session to end", func() bool {
		sessions := must[page.Page[calls.RoomSession]](t)(
			rooms.List(t.Context(), m.project, calls.RoomFilter{}, page.Query{Size: 10})).Items
		return len(sessions) == 1 && !sessions[0].Ended.IsZero() && m.calls.Stats().Rooms == 0
	})
}

// TestMoveUnseen shows that the members of a room stop seeing a call as soon as it moves out.
func TestMoveUnseen(t *testing.T) {
	m := newMeeting(t)
	host := m.guest().join()
	p := m.talk("ada", "bob")
	sees := func() string {
		events := m.received(calls.LayoutChanged, host)
		return events[len(events)-1].Seen
	}

	for range 2 {
		if err := p.caller.move(lobby); err != nil {
			t.Fatalf("moving into the room: %v", err)
		}
		eventually(t, "the host to see the caller", func() bool { return sees() == p.caller.leg })
		if err := p.caller.move(""); err != nil {
			t.Fatalf("moving out of the room: %v", err)
		}
		if seen := sees(); seen != "" {
			t.Errorf("after the move, the host sees %s, want nobody", seen)
		}
	}
}

// TestMoveTakenOver shows that a call's time in a room is counted from the move, even if the
// room's node is lost.
func TestMoveTakenOver(t *testing.T) {
	m, second := newMeetingOfNodes(t)
	m.setRoom("remove_after_seconds_elapsed", "1800")
	p := m.talk("ada", "bob")
	if err := p.caller.move(lobby); err != nil {
		t.Fatalf("moving into the room: %v", err)
	}

	record := p.call()
	record.Answered = record.Answered.Add(-time.Hour)
	if err := m.store.SaveCall(t.Context(), record); err != nil {
		t.Fatal(err)
	}

	m.calls = calls.New(second)
	for _, side := range []*member{p.caller, p.callee} {
		side.do(calls.Command{Op: calls.Invite, Attach: true, SDP: offer})
	}
	if err := p.caller.move(""); err != nil {
		t.Errorf("after the takeover, moving out = %v, want no error", err)
	}
	if got := p.call().State; got != calls.InCall {
		t.Errorf("after the takeover, the call is %s, want %s", got, calls.InCall)
	}
}

// TestMoveOften shows that a call can move in and out repeatedly while its clients send other
// commands.
func TestMoveOften(t *testing.T) {
	m := newMeeting(t)
	m.guest().join()
	p := m.talk("ada", "bob")
	const moves = 20
	var group sync.WaitGroup
	for _, side := range []*member{p.caller, p.callee} {
		group.Go(func() {
			for range 5 * moves {
				for _, op := range []calls.Op{calls.Mute, calls.Hold, calls.List, calls.Unhold, calls.Unmute} {
					_ = side.try(calls.Command{Op: op, Media: video}) // a room limits some of them
				}
			}
		})
		group.Go(func() {
			for range moves {
				_ = m.calls.Move(context.Background(), m.project, p.caller.leg, lobby) // may fail
				_ = m.calls.Move(context.Background(), m.project, p.caller.leg, "")
			}
		})
	}
	group.Wait()

	if err := p.caller.move(""); err != nil && !errors.Is(err, problem.Conflict) {
		t.Errorf("the last move out of the room = %v, want no error or %v", err, problem.Conflict)
	}
	p.caller.do(calls.Command{Op: calls.Hangup})
	p.recordHas(func(want *calls.Record) {
		want.State = calls.Completed
		want.RoomSession = ""
	})
}

// shares adds a screen that a member of a call shares, and returns its client.
func (m *member) shares() *member {
	m.t.Helper()
	screen := &member{Client: m.Client, meeting: m.meeting, leg: uuid.NewString()}
	screen.do(calls.Command{Op: calls.Invite, Type: calls.Screen, Parent: m.leg, SDP: offer})
	return screen
}

// TestMoveScreen shows that a shared screen moves into a room with its call, and out again. The
// members of the room see it, and are notified of it.
func TestMoveScreen(t *testing.T) {
	m := newMeeting(t)
	host := m.guest().join()
	p := m.talk("ada", "bob")
	screen := p.caller.shares()
	if err := p.caller.move(lobby); err != nil {
		t.Fatalf("moving into the room: %v", err)
	}

	joined := func(e calls.Event) bool { return e.Member.ID == screen.leg }
	if !slices.ContainsFunc(m.received(calls.MemberJoined, host), joined) {
		t.Error("the host was not notified that the screen has joined")
	}
	eventually(t, "the host to see the screen", func() bool {
		events := m.received(calls.LayoutChanged, host)
		return len(events) > 0 && events[len(events)-1].Seen == screen.leg
	})

	if err := p.caller.move(""); err != nil {
		t.Fatalf("moving out of the room: %v", err)
	}
	if !slices.ContainsFunc(m.received(calls.MemberLeft, host), joined) {
		t.Error("the host was not notified that the screen has left")
	}
}
