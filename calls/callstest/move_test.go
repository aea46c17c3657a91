package callstest

import (
	"context"
	"encoding/json"
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

// A pair is a call between two subscribers.
type pair struct{ caller, callee *member }

// talk connects two new subscribers in a call.
func (m *meeting) talk(from, to string) pair {
	m.t.Helper()
	p := pair{m.subscriber(from), m.subscriber(to)}
	p.callee.Token.ExpiresAt = time.Now().Add(time.Hour) // otherwise, the callee would not be online
	if err := m.fabric.Presence.Online(m.t.Context(), p.callee.Token, p.callee.Socket.ID); err != nil {
		m.t.Fatal(err)
	}
	p.caller.do(calls.Command{Op: calls.Invite, To: "/private/" + to, SDP: offer})
	eventually(m.t, "the callee to ring", func() bool { return len(m.received(calls.Invited, p.callee)) == 1 })
	p.callee.leg = m.received(calls.Invited, p.callee)[0].Leg
	p.callee.do(calls.Command{Op: calls.Answer, SDP: offer})
	return p
}

// move moves the call of a member into the room at an address, or out of its room if the address is
// "".
func (m *member) move(address string) error { return m.try(calls.Command{Op: calls.Move, To: address}) }

// lastJoined returns the last Joined event of a client.
func (m *meeting) lastJoined(by *member) calls.Event {
	m.t.Helper()
	all := m.received(calls.Joined, by)
	if len(all) == 0 {
		m.t.Fatal("a client is not a member")
	}
	return all[len(all)-1]
}

// membersIn returns the ids of the members in the last Joined event of a client, in order.
func (m *meeting) membersIn(by *member) (ids []string) {
	for _, member := range m.lastJoined(by).Room.Members {
		ids = append(ids, member.ID)
	}
	return ids
}

// call returns the record of the pair's call.
func (p pair) call() calls.Record {
	p.caller.t.Helper()
	return must[calls.Record](p.caller.t)(p.caller.store.FindCall(context.Background(), p.caller.project, p.caller.leg))
}

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
		if e := m.lastJoined(side); e.RoomSession != session || !slices.Equal(m.membersIn(side), everybody) {
			t.Errorf("a side is in session %s with %v, want %s with %v",
				e.RoomSession, m.membersIn(side), session, everybody)
		}
	}

	if n := len(m.received(calls.MemberJoined, host)); n != 2 {
		t.Errorf("the host was notified of %d new members, want 2", n)
	}
	if r := p.call(); r.RoomSession != session || r.Joined.Before(before.Answered) || r.Key != before.Key {
		t.Errorf("the record is %+v, want the record of the call, in session %s", r, session)
	}

	members := must[page.Page[calls.Record]](t)(
		calls.NewRooms(m.store, m.store).Members(t.Context(), m.project, session, page.Query{Size: 10})).Items
	if len(members) != 2 || !members[0].Joined.Equal(p.call().Joined) && !members[1].Joined.Equal(p.call().Joined) {
		t.Errorf("the session has the members %+v, want the host and the call", members)
	}

	if err := p.caller.move(""); err != nil {
		t.Fatalf("moving out of the room: %v", err)
	}
	for _, side := range []*member{p.caller, p.callee} {
		both := []string{p.caller.leg, p.callee.leg}
		if e := m.lastJoined(side); e.RoomSession == session || !slices.Equal(m.membersIn(side), both) {
			t.Errorf("afterwards, a side is in a session with %v, want %v alone", m.membersIn(side), both)
		}
	}

	if n := len(m.received(calls.MemberLeft, host)); n != 2 {
		t.Errorf("the host was notified of %d members that left, want 2", n)
	}
	p.callee.do(calls.Command{Op: calls.Hangup})
	if r := p.call(); r.State != calls.Completed || r.RoomSession != "" || !r.Answered.Equal(before.Answered) {
		t.Errorf("the record is %+v, want an ended call outside the room", r)
	}

	if n := len(m.received(calls.HungUp, p.caller)); n != 1 {
		t.Errorf("the caller was notified of %d ends, want 1", n)
	}
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
			if n := len(m.received(calls.MemberLeft, other)); n != 1 || p.call().State != calls.InCall {
				t.Errorf("the other side was notified of %d departures, and the call is %s; want 1 and %s",
					n, p.call().State, calls.InCall)
			}

			if err := other.move(""); !errors.Is(err, problem.Conflict) {
				t.Errorf("moving out alone = %v, want %v", err, problem.Conflict)
			}

			other.do(calls.Command{Op: calls.Hangup})
			s := must[calls.RoomSession](t)(m.store.FindRoom(t.Context(), m.project, session))
			if p.call().State != calls.Completed || s.Ended.IsZero() || s.Most != 2 {
				t.Errorf("the call is %s, and the session %+v; want both to have ended, with 2 members",
					p.call().State, s)
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
		err  error
		kind error
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
		if !errors.Is(tt.err, tt.kind) {
			t.Errorf("%s: moving = %v, want %v", name, tt.err, tt.kind)
		}
	}

	if err := stranger.move(lobby); err != nil || len(m.received(calls.HungUp, stranger)) != 1 {
		t.Errorf("a stranger's move = %v, and %d ends, want no error and 1 end",
			err, len(m.received(calls.HungUp, stranger)))
	}
	if r := p.call(); r.State != calls.InCall || r.RoomSession != "" || len(m.received(calls.Joined, p.caller)) != 1 {
		t.Errorf("the refused call is %+v, want it unchanged", r)
	}
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

	eventually(t, "the room session to end", func() bool {
		rooms := calls.NewRooms(m.store, m.store)
		all := must[page.Page[calls.RoomSession]](t)(
			rooms.List(t.Context(), m.project, calls.RoomFilter{}, page.Query{Size: 10})).Items
		return len(all) == 1 && !all[0].Ended.IsZero() && m.calls.Stats().Rooms == 0
	})
}

// TestMoveUnseen shows that the members of a room stop seeing a call as soon as it moves out.
func TestMoveUnseen(t *testing.T) {
	m := newMeeting(t)
	host := m.guest().join()
	p := m.talk("ada", "bob")
	sees := func() string {
		all := m.received(calls.LayoutChanged, host)
		return all[len(all)-1].Seen
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

// TestMoveTakenOver shows that a call's time in a room is counted from the move, even after the
// room's node was lost.
func TestMoveTakenOver(t *testing.T) {
	var second calls.Config
	m := newMeeting(t, func(c *calls.Config) {
		second = *c
		second.Node = "second"
	})
	kind, limit := m.fabric.Resources.Kinds().ByPath("conference_rooms"), json.RawMessage("1800")
	room := must[fabric.Address](t)(m.fabric.Addresses.FindAt(t.Context(), m.project, lobby)).ResourceID
	must[fabric.Resource](t)(m.fabric.Resources.Update(t.Context(), m.project, kind, room,
		map[string]json.RawMessage{"remove_after_seconds_elapsed": limit}))
	p := m.talk("ada", "bob")
	if err := p.caller.move(lobby); err != nil {
		t.Fatalf("moving into the room: %v", err)
	}

	r := p.call()
	r.Answered = r.Answered.Add(-time.Hour)
	if err := m.store.SaveCall(t.Context(), r); err != nil {
		t.Fatal(err)
	}

	m.calls = calls.New(second)
	for _, side := range []*member{p.caller, p.callee} {
		side.do(calls.Command{Op: calls.Invite, Attach: true, SDP: offer})
	}
	if err := p.caller.move(""); err != nil || p.call().State != calls.InCall {
		t.Errorf("after the takeover, the call is %s, and moving out = %v, want a running call and no error",
			p.call().State, err)
	}
}

// TestMoveOften shows that a call can move in and out often while its clients send other commands.
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
		t.Errorf("the last move out of the room = %v", err)
	}
	p.caller.do(calls.Command{Op: calls.Hangup})
	if r := p.call(); r.State != calls.Completed || r.RoomSession != "" {
		t.Errorf("the call is %+v, want an ended call outside the room", r)
	}
}
