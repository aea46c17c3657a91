package callstest

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/bus"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
	"github.com/selvage/selvage/store"
)

// A wire carries messages between nodes of the same process.
type wire struct {
	mu       sync.Mutex
	channels map[string]chan []byte
}

func (w *wire) channel(name string) chan []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.channels[name] == nil {
		w.channels[name] = make(chan []byte, 100)
	}
	return w.channels[name]
}

// Publish implements bus.Transport.
func (w *wire) Publish(ctx context.Context, channel string, message []byte) error {
	select {
	case w.channel(channel) <- message:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Listen implements bus.Transport.
func (w *wire) Listen(ctx context.Context, channels []string, receive func(message []byte)) {
	var listeners sync.WaitGroup
	for _, name := range channels {
		listeners.Go(func() {
			for {
				select {
				case message := <-w.channel(name):
					receive(message)
				case <-ctx.Done():
					return
				}
			}
		})
	}
	listeners.Wait()
}

// twoNodes returns a meeting, and a second node with the same stores. The functions in change may
// modify the configuration of the meeting's node.
func twoNodes(t *testing.T, change ...func(*calls.Config)) (m *meeting, second *calls.Calls) {
	t.Helper()
	joint := &wire{channels: make(map[string]chan []byte)}
	running, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	node := func(name string) *bus.Bus {
		return bus.New(bus.Config{Node: name, Transports: []bus.Transport{joint}, Log: slog.New(slog.DiscardHandler)})
	}

	one, two := node("node"), node("second")
	var other calls.Config
	m = newMeeting(t, func(c *calls.Config) {
		other = *c
		other.Node, other.Nodes = "second", two
		c.Nodes = one
		for _, f := range change {
			f(c)
		}
	})
	second = calls.New(other)
	for _, b := range []*bus.Bus{one, two} {
		go b.Run(running)
	}
	return m, second
}

// TestMoveByOtherNode shows that a call can be moved by a request to a node other than its own. The
// audit trail then names the operator who made the request.
func TestMoveByOtherNode(t *testing.T) {
	m, asked := twoNodes(t)
	p := m.talk("ada", "bob")
	by := audit.Origin{Actor: audit.Actor{Kind: audit.Operator, ID: "op"}, Address: "192.0.2.7", RequestID: "r"}
	if err := asked.Move(audit.With(t.Context(), &by), m.project, p.caller.leg, lobby); err != nil {
		t.Fatalf("moving by another node: %v", err)
	}
	if p.call().RoomSession == "" {
		t.Error("after the move, the record names no room session")
	}

	trail := must[page.Page[audit.Event]](t)(
		m.store.ListAudit(t.Context(), audit.Filter{Action: "call.moved_in"}, page.Query{Size: 9})).Items
	if len(trail) != 1 {
		t.Fatalf("the audit trail has %d moves, want 1", len(trail))
	}
	got := audit.Origin{Actor: trail[0].Actor, Address: trail[0].Address, RequestID: trail[0].RequestID}
	if got != by {
		t.Errorf("the audit trail says that the move was requested by %+v, want %+v", got, by)
	}
}

// TestMoveToOtherNode shows that a call cannot move into a room on another node, and that the call
// continues. When the room is empty, it opens on the node of the call.
func TestMoveToOtherNode(t *testing.T) {
	m, second := twoNodes(t)
	host := m.guest()
	host.Socket.Node = "second"
	hostDoes := func(cmd calls.Command) {
		t.Helper()
		cmd.Leg = host.leg
		must[calls.Reply](t)(second.Do(t.Context(), host.Client, cmd))
	}
	hostDoes(calls.Command{Op: calls.Invite, To: lobby, SDP: offer})

	p := m.talk("ada", "bob")
	var refused *problem.Error
	if err := p.caller.move(lobby); !errors.As(err, &refused) || refused.Code != "room_elsewhere" {
		t.Fatalf("moving into a room on another node = %v, want room_elsewhere", err)
	}
	p.recordHas(func(want *calls.Record) {
		want.RoomSession = ""
		want.Ended = time.Time{}
	})

	hostDoes(calls.Command{Op: calls.Hangup})
	eventually(t, "the call to move", func() bool { return p.caller.move(lobby) == nil })
	if got := m.calls.Stats().Rooms; got != 1 {
		t.Errorf("the node of the call has %d rooms, want 1", got)
	}
	if got := second.Stats().Rooms; got != 0 {
		t.Errorf("the second node has %d rooms, want none", got)
	}
}

// onSecond connects a client to the second node, and returns a function that executes its commands
// there.
func onSecond(who *member, second *calls.Calls) func(calls.Command) {
	who.Socket.Node = "second"
	return func(cmd calls.Command) {
		who.t.Helper()
		cmd.Leg = who.leg
		must[calls.Reply](who.t)(second.Do(context.Background(), who.Client, cmd))
	}
}

// A foundStore calls found after it has found an open room session.
type foundStore struct {
	*store.Store
	found func()
}

func (s *foundStore) FindOpenRoom(ctx context.Context, project, room string) (calls.RoomSession, error) {
	r, err := s.Store.FindOpenRoom(ctx, project, room)
	s.found()
	return r, err
}

// TestRoomEndsElsewhere shows that a client who dials a room opens it, if the room's session on
// another node ends before the client has joined it there.
func TestRoomEndsElsewhere(t *testing.T) {
	var rows *foundStore
	m, second := twoNodes(t, func(c *calls.Config) {
		rows = &foundStore{Store: c.Store.(*store.Store)}
		c.Rooms = rows
	})
	hostDoes := onSecond(m.guest(), second)
	hostDoes(calls.Command{Op: calls.Invite, To: lobby, SDP: offer})
	var once sync.Once
	rows.found = func() { once.Do(func() { hostDoes(calls.Command{Op: calls.Hangup}) }) }

	guest := m.guest().join()
	m.wasSent(guest, calls.Joined, 1)
	if got := m.calls.Stats().Rooms; got != 1 {
		t.Errorf("the node of the client has %d rooms, want 1", got)
	}
}

// TestRefusedElsewhere shows that a node does not remember the leg of a client that the node of a
// room has refused.
func TestRefusedElsewhere(t *testing.T) {
	m, second := twoNodes(t)
	moderatorDoes := onSecond(m.subscriber("moderator"), second)
	moderatorDoes(calls.Command{Op: calls.Invite, To: lobby, SDP: offer})
	moderatorDoes(calls.Command{Op: calls.Lock})
	guest := m.guest().join()
	m.wasSent(guest, calls.HungUp, 1)
	if got := m.calls.Stats().Elsewhere; got != 0 {
		t.Errorf("the node of the client knows %d legs on other nodes, want none", got)
	}
}

// TestGuestMoves shows that a guest can move a call only to the addresses in the guest's token.
func TestGuestMoves(t *testing.T) {
	m := newMeeting(t)
	bob := m.subscriber("bob")
	bob.Token.ExpiresAt = time.Now().Add(time.Hour) // otherwise, bob would not be online
	if err := m.fabric.Presence.Online(t.Context(), bob.Token, bob.Socket.ID); err != nil {
		t.Fatal(err)
	}
	address := must[fabric.Address](t)(m.fabric.Addresses.FindAt(t.Context(), m.project, "/private/bob"))
	guest := m.client(fabric.Token{Kind: fabric.Guest, AddressIDs: []string{address.ID}})
	guest.do(calls.Command{Op: calls.Invite, To: "/private/bob", SDP: offer})
	eventually(t, "bob to ring", func() bool { return len(m.received(calls.Invited, bob)) == 1 })
	bob.leg = m.received(calls.Invited, bob)[0].Leg
	bob.do(calls.Command{Op: calls.Answer, SDP: offer})

	if err := guest.move(lobby); !errors.Is(err, problem.Invalid) {
		t.Errorf("moving into a room that the guest may not call = %v, want %v", err, problem.Invalid)
	}
	m.wasSent(bob, calls.Joined, 1)
	if got := m.calls.Stats().Rooms; got != 0 {
		t.Errorf("%d rooms are open, want none", got)
	}
	if err := bob.move(lobby); err != nil {
		t.Errorf("the other side's move = %v, want no error", err)
	}
}

// hasEntry returns an option that stores an entry of a node in the session store, as a running node
// does.
func hasEntry(t *testing.T, node string) func(*calls.Config) {
	return func(c *calls.Config) {
		t.Helper()
		if err := c.Sessions.Put(t.Context(), session.Key{Kind: "node", ID: node}, []byte{}, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAttachWhileDraining shows that a client can attach to its call on another node through a node
// that takes no new calls.
func TestAttachWhileDraining(t *testing.T) {
	m, second := twoNodes(t, hasEntry(t, "node"))
	p := m.talk("ada", "bob")
	stopped, stop := context.WithCancel(t.Context())
	stop()
	second.Drain(stopped)

	callerDoes := onSecond(p.caller, second)
	callerDoes(calls.Command{Op: calls.Invite, Attach: true, SDP: offer})
	m.wasSent(p.caller, calls.HungUp, 0)
	if got := second.Stats().Elsewhere; got != 1 {
		t.Errorf("the node of the client knows %d legs on other nodes, want 1", got)
	}
}

// TestAttachDespiteDeadNode shows that a client can attach to its call on another node, even if a third
// node, which carried a different call, has just died.
func TestAttachDespiteDeadNode(t *testing.T) {
	const dead = "a dead node" // comes first in the list of nodes
	m, second := twoNodes(t, hasEntry(t, "node"), hasEntry(t, dead))
	p := m.talk("ada", "bob")
	record := m.talk("carol", "dan").call()
	record.Key, record.ID, record.CalleeLeg = uuid.NewString(), uuid.NewString(), uuid.NewString()
	record.Node = dead
	if err := m.store.SaveCall(t.Context(), record); err != nil {
		t.Fatal(err)
	}

	callerDoes := onSecond(p.caller, second)
	callerDoes(calls.Command{Op: calls.Invite, Attach: true, SDP: offer})
	if got := second.Stats().Elsewhere; got != 1 {
		t.Errorf("the node of the client knows %d legs on other nodes, want 1", got)
	}
}
