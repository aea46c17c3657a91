package callstest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/store"
)

// A lossyStore carries out the writes that add or take over calls. While lossy is set, their responses
// are lost.
type lossyStore struct {
	*store.Store
	lossy atomic.Bool
}

// response returns the response to a write that has returned err.
func (s *lossyStore) response(err error) error {
	if s.lossy.Load() {
		return errors.New("the connection to the database was lost")
	}
	return err
}

func (s *lossyStore) SaveCall(ctx context.Context, r calls.Record) error {
	return s.response(s.Store.SaveCall(ctx, r))
}

func (s *lossyStore) TakeCall(ctx context.Context, r calls.Record, node string) error {
	return s.response(s.Store.TakeCall(ctx, r, node))
}

func (s *lossyStore) TakeRoom(
	ctx context.Context, r calls.RoomSession, node string,
) ([]calls.Record, error) {
	members, err := s.Store.TakeRoom(ctx, r, node)
	return members, s.response(err)
}

// loseTakeover makes a second node take over the calls of a meeting, but loses the response of the
// database. The client who attached gets an error.
func loseTakeover(t *testing.T, client *member, second calls.Config) {
	t.Helper()
	m := client.meeting
	rows := &lossyStore{Store: m.store}
	second.Store = rows
	second.Rooms = rows
	m.calls = calls.New(second)
	client.Socket.Node = "second"
	rows.lossy.Store(true)
	if err := client.try(calls.Command{Op: calls.Invite, Attach: true, SDP: offer}); err == nil {
		t.Fatal("attaching without a response of the database succeeds, want an error")
	}
	rows.lossy.Store(false)
}

// TestLostTakeover shows that a client can attach again if the response to the takeover of its call was
// lost. If no client does, the call ends.
func TestLostTakeover(t *testing.T) {
	for name, isBack := range map[string]bool{"attached again": true, "abandoned": false} {
		t.Run(name, func(t *testing.T) {
			m, second := newMeetingOfNodes(t)
			p := m.talk("ada", "bob")
			loseTakeover(t, p.caller, second)
			if isBack {
				p.caller.do(calls.Command{Op: calls.Invite, Attach: true, SDP: offer})
				m.wasSent(p.caller, calls.Joined, 2)
				return
			}
			go m.calls.RunNode(t.Context())
			eventually(t, "the call to end", func() bool { return p.call().State == calls.Completed })
			if got := p.call().Cause; got != calls.NodeLost {
				t.Errorf("the call ended with %v, want %v", got, calls.NodeLost)
			}
		})
	}
}

// TestLostTakeoverOfRoom is like TestLostTakeover, for the members of a room.
func TestLostTakeoverOfRoom(t *testing.T) {
	for name, isBack := range map[string]bool{"attached again": true, "abandoned": false} {
		t.Run(name, func(t *testing.T) {
			m, second := newMeetingOfNodes(t)
			guest := m.guest().join()
			session := m.lastJoined(guest).RoomSession
			loseTakeover(t, guest, second)
			if isBack {
				guest.do(calls.Command{Op: calls.Invite, Attach: true, SDP: offer})
				m.wasSent(guest, calls.Joined, 2)
				return
			}
			go m.calls.RunNode(t.Context())
			eventually(t, "the room session and the call to end", func() bool {
				room := must[calls.RoomSession](t)(m.store.FindRoom(t.Context(), m.project, session))
				call := must[calls.Record](t)(m.store.FindCall(t.Context(), m.project, guest.leg))
				return !room.Ended.IsZero() && call.State == calls.Completed
			})
		})
	}
}

// beginWithoutResponse makes ada call bob while the responses to the first writes are lost.
func beginWithoutResponse(m *meeting, rows *lossyStore) pair {
	m.t.Helper()
	p := pair{caller: m.subscriber("ada"), callee: m.online("bob")}
	rows.lossy.Store(true)
	defer rows.lossy.Store(false)
	if err := p.caller.try(calls.Command{Op: calls.Invite, To: "/private/bob", SDP: offer}); err == nil {
		m.t.Fatal("calling without a response of the database succeeds, want an error")
	}
	return p
}

// TestLostBeginning shows that a call does not seem to continue if it could not begin, because the
// response to its first write was lost. Calls that have begun continue.
func TestLostBeginning(t *testing.T) {
	var rows *lossyStore
	m := newMeeting(t, func(c *calls.Config) {
		rows = &lossyStore{Store: c.Store.(*store.Store)}
		c.Store = rows
	})
	other := m.talk("carol", "dan")
	p := beginWithoutResponse(m, rows)

	go m.calls.RunNode(t.Context())
	eventually(t, "the call to end", func() bool { return p.call().State == calls.Completed })
	if got := other.call().State; got != calls.InCall {
		t.Errorf("the other call is %s, want %s", got, calls.InCall)
	}
}

// A searchedStore does not respond to the search for a node's calls until release is closed.
type searchedStore struct {
	*lossyStore
	searching chan struct{} // receives a value when a search begins
	release   chan struct{}
}

func (s *searchedStore) RunningCalls(ctx context.Context, node string, limit int) ([]calls.Record, error) {
	select {
	case s.searching <- struct{}{}:
	case <-s.release:
	}
	<-s.release
	return s.Store.RunningCalls(ctx, node, limit)
}

// TestSlowSearch shows that clients can enter rooms while the node searches for orphans.
func TestSlowSearch(t *testing.T) {
	rows := &searchedStore{searching: make(chan struct{}), release: make(chan struct{})}
	m := newMeeting(t, func(c *calls.Config) {
		rows.lossyStore = &lossyStore{Store: c.Store.(*store.Store)}
		c.Store = rows
	})
	p := beginWithoutResponse(m, rows.lossyStore)

	go m.calls.RunNode(t.Context())
	<-rows.searching
	guest := m.guest()
	go func() { _ = guest.try(calls.Command{Op: calls.Invite, To: lobby, SDP: offer}) }()
	eventually(t, "the guest to enter the room", func() bool { return len(m.received(calls.Joined, guest)) == 1 })
	close(rows.release)
	eventually(t, "the call to end", func() bool { return p.call().State == calls.Completed })
}
