package callstest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/store"
)

// TestIncompatibleAnswer shows the cause with which a call ends if its callee answers without
// encryption.
func TestIncompatibleAnswer(t *testing.T) {
	m := newMeeting(t)
	p := m.ring("ada", "bob")
	plain := strings.ReplaceAll(offer, "a=fingerprint", "a=x")
	if err := p.callee.try(calls.Command{Op: calls.Answer, SDP: plain}); !errors.Is(err, problem.Invalid) {
		t.Fatalf("answering without encryption = %v, want %v", err, problem.Invalid)
	}
	m.wasSent(p.caller, calls.HungUp, 1)
	if got := p.call().Cause; got != calls.Incompatible {
		t.Errorf("the call ended with %v, want %v", got, calls.Incompatible)
	}
	if got := p.call().Result(); got != calls.Failed {
		t.Errorf("the result of the call is %s, want %s", got, calls.Failed)
	}
}

// TestInvitedAgain shows that a client that reconnects to any node while it rings gets the invitation
// again, and can answer. A client that only replaces its token does not get it again.
func TestInvitedAgain(t *testing.T) {
	m, second := twoNodes(t)
	p := m.ring("ada", "bob")
	bob := p.callee
	m.calls.Moved(t.Context(), bob.Socket, bob.Client)
	bob.reconnect(second, "second")
	bob.rings()
	bob.reconnect(m.calls, "node")
	bob.rings()
	if n := len(m.received(calls.Invited, nil)); n != 3 {
		t.Errorf("the client got %d invitations, want 3", n)
	}
	bob.do(calls.Command{Op: calls.Answer, SDP: offer})
	m.wasSent(p.caller, calls.Joined, 1)
}

// TestAnsweredAfterReconnecting shows that a client that answers as soon as it has reconnected does
// not get the invitation again. The client has already accepted the call, and would offer it to its
// user again. A client that reconnects twice gets the invitation once.
func TestAnsweredAfterReconnecting(t *testing.T) {
	m := newMeeting(t)
	answered, twice, last := m.ring("ada", "bob"), m.ring("cleo", "dan"), m.ring("eve", "fay")
	answered.callee.reconnect(m.calls, "node")
	answered.callee.do(calls.Command{Op: calls.Answer, SDP: offer})
	m.wasSent(answered.callee, calls.Joined, 1)
	twice.callee.reconnect(m.calls, "node")
	twice.catchUp()
	twice.callee.reconnect(m.calls, "node")
	last.callee.reconnect(m.calls, "node")

	last.callee.rings() // this invitation is due after those to the others
	twice.callee.rings()
	answered.catchUp()
	twice.catchUp()
	m.wasSent(answered.callee, calls.Invited, 0)
	m.wasSent(twice.callee, calls.Invited, 1)
}

// TestLateCommand shows that a client that has reconnected gets the events of its call on its new socket,
// even if a command from its former socket arrives later, at any node.
func TestLateCommand(t *testing.T) {
	m, second := twoNodes(t)
	go m.calls.RunNode(t.Context()) // otherwise, the second node would not forward the command
	here, elsewhere := m.talk("ada", "bob"), m.talk("cleo", "dan")
	for _, tt := range []struct {
		client *member
		from   *calls.Calls
	}{
		{here.callee, m.calls},
		{elsewhere.callee, second},
	} {
		late := tt.client.Client
		tt.client.reconnect(m.calls, "node")
		attach := calls.Command{Op: calls.Invite, Attach: true, Leg: tt.client.leg, SDP: offer}
		eventually(t, "the node of the call to carry out the command", func() bool {
			return must[calls.Reply](t)(tt.from.Do(t.Context(), late, attach)).Node == "node"
		})
	}
	for _, p := range []pair{here, elsewhere} {
		p.caller.do(calls.Command{Op: calls.Hangup})
		m.wasSent(p.callee, calls.HungUp, 1)
	}
}

// TestReconnectTwice shows that a client that reconnects twice while its call is busy gets the events of
// the call on its last socket.
func TestReconnectTwice(t *testing.T) {
	rows := &ringingStore{}
	m := newMeeting(t, func(c *calls.Config) {
		rows.Store = c.Store.(*store.Store)
		c.Store = rows
	})
	p := pair{caller: m.subscriber("ada"), callee: m.online("bob")}
	rows.ringing = func() {
		p.callee.reconnect(m.calls, "node")
		p.callee.reconnect(m.calls, "node")
	}
	p.connects("bob")
	m.wasSent(p.callee, calls.Joined, 1)
}

// TestReconnectAgain shows that a client that reconnects twice gets the events of its call on its last
// socket, even if it does not know its second socket, because the response with its name was lost.
func TestReconnectAgain(t *testing.T) {
	m := newMeeting(t)
	p := m.talk("ada", "bob")
	known := p.callee.Socket
	p.callee.reconnect(m.calls, "node")
	p.callee.Socket = known
	p.callee.reconnect(m.calls, "node")
	p.caller.do(calls.Command{Op: calls.Hangup})
	m.wasSent(p.callee, calls.HungUp, 1)
}

// TestDuplicatedTab shows that a client can call from a socket after another client has reconnected in its
// place, because a browser has duplicated the tab. The events of the call go to the socket that called.
func TestDuplicatedTab(t *testing.T) {
	m := newMeeting(t)
	p := pair{caller: m.subscriber("ada"), callee: m.online("bob")}
	duplicate := *p.caller
	duplicate.reconnect(m.calls, "node")
	p.connects("bob")
	m.wasSent(p.caller, calls.Joined, 1)
}

// An offeringEngine calls offering before it offers media to a client that will ring.
type offeringEngine struct {
	calls.Engine
	offering func()
}

func (e *offeringEngine) Offer(w calls.Watcher, other calls.Media, t calls.Terms) (calls.Media, string, error) {
	e.offering()
	return e.Engine.Offer(w, other, t)
}

// TestReconnectWhileDialed shows that a client that reconnects after a call has found its old socket, but
// before it rings there, gets the invitation and can answer.
func TestReconnectWhileDialed(t *testing.T) {
	engine := &offeringEngine{}
	m := newMeeting(t, func(c *calls.Config) {
		engine.Engine = c.Engine
		c.Engine = engine
	})
	p := pair{caller: m.subscriber("ada"), callee: m.online("bob")}
	engine.offering = func() { p.callee.reconnect(m.calls, "node") }
	p.connects("bob")
	m.wasSent(p.callee, calls.Joined, 1)
}

// catchUp waits until the call has done what was requested before.
func (p pair) catchUp() {
	p.caller.t.Helper()
	p.caller.do(calls.Command{Op: calls.Hold})
}

// reconnect replaces the socket of the client by a new one on a node.
func (m *member) reconnect(to *calls.Calls, node string) {
	lost := m.Socket
	m.Socket = calls.Socket{Node: node, ID: uuid.NewString()}
	to.Moved(m.t.Context(), lost, m.Client)
}

// TestRefreshedGuest shows that a guest who gets a new token during a call can still end the call,
// and attach to it after its node was lost.
func TestRefreshedGuest(t *testing.T) {
	m, second := newMeetingOfNodes(t)
	p := m.guestFor("bob")
	p.connects("bob")
	guest := p.caller
	guest.Token.ID = uuid.NewString()
	m.calls.Moved(t.Context(), guest.Socket, guest.Client)

	guest.do(calls.Command{Op: calls.Hold})
	m.wasSent(guest, calls.HungUp, 0)
	m.calls = calls.New(second)
	guest.Socket.Node = "second"
	guest.do(calls.Command{Op: calls.Invite, Attach: true, SDP: offer})
	m.wasSent(guest, calls.Joined, 2)
	guest.do(calls.Command{Op: calls.Hangup})
	if got := p.call().State; got != calls.Completed {
		t.Errorf("after the guest has hung up, the call is %s, want %s", got, calls.Completed)
	}
}

// An earlierStore writes calls like an earlier version of the server, which stored the id of a guest's
// token.
type earlierStore struct {
	*store.Store
	token string
}

func (s *earlierStore) SaveCall(ctx context.Context, r calls.Record) error {
	r.Guest = s.token
	return s.Store.SaveCall(ctx, r)
}

// TestEarlierGuest shows that a guest learns that its call is lost, and can attach to it, if the node of
// the call had an earlier version.
func TestEarlierGuest(t *testing.T) {
	var second calls.Config
	earlier := &earlierStore{}
	m := newMeeting(t, func(c *calls.Config) {
		second = *c
		second.Node = "second"
		earlier.Store = c.Store.(*store.Store)
		c.Store = earlier
	})
	p := m.guestFor("bob")
	guest := p.caller
	earlier.token = guest.Token.ID
	p.connects("bob")

	m.calls = calls.New(second)
	lost := guest.Socket
	guest.Socket = calls.Socket{Node: "second", ID: uuid.NewString()}
	m.calls.Moved(t.Context(), lost, guest.Client)
	eventually(t, "the guest to learn that its call is lost", func() bool {
		return len(m.received(calls.Lost, guest)) == 1
	})
	guest.do(calls.Command{Op: calls.Invite, Attach: true, SDP: offer})
	m.wasSent(guest, calls.Joined, 1)
}

// TestRevokedAbsentGuest shows that revoking the tokens of a guest ends its call, even if the guest has
// not come back after its node was lost.
func TestRevokedAbsentGuest(t *testing.T) {
	m, second := newMeetingOfNodes(t)
	p := m.guestFor("bob")
	p.connects("bob")

	m.calls = calls.New(second)
	p.callee.Socket.Node = "second"
	p.callee.do(calls.Command{Op: calls.Invite, Attach: true, SDP: offer})
	go m.calls.Run(t.Context())
	refresh := fabric.Token{Kind: fabric.Refresh, FamilyID: p.caller.Token.FamilyID}
	if err := m.fabric.Tokens.Revoke(t.Context(), refresh); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the call to end", func() bool { return p.call().State == calls.Completed })
	if got := p.call().Cause; got != calls.TokenRevoked {
		t.Errorf("the call ended with %v, want %v", got, calls.TokenRevoked)
	}
}

// guestFor returns a guest and the new subscriber whom the guest may call.
func (m *meeting) guestFor(name string) (p pair) {
	m.t.Helper()
	p.callee = m.online(name)
	address := must[fabric.Address](m.t)(m.fabric.Addresses.FindAt(m.t.Context(), m.project, "/private/"+name))
	p.caller = m.client(fabric.Token{Kind: fabric.Guest, FamilyID: "family", AddressIDs: []string{address.ID}})
	return p
}

// connects makes the caller of a pair call the callee, whose name is given, and makes the callee
// answer.
func (p pair) connects(name string) {
	p.caller.t.Helper()
	p.caller.do(calls.Command{Op: calls.Invite, To: "/private/" + name, SDP: offer})
	p.callee.rings()
	p.callee.do(calls.Command{Op: calls.Answer, SDP: offer})
}

// A ringingStore calls ringing before it writes that a call rings.
type ringingStore struct {
	*store.Store
	ringing func()
}

func (s *ringingStore) SaveCall(ctx context.Context, r calls.Record) error {
	if r.State == calls.Ringing {
		s.ringing()
	}
	return s.Store.SaveCall(ctx, r)
}

// TestLateCall shows that a call ends if it begins so slowly that its caller gets an error.
func TestLateCall(t *testing.T) {
	rows := &ringingStore{}
	m := newMeeting(t, func(c *calls.Config) {
		rows.Store = c.Store.(*store.Store)
		c.Store = rows
	})
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan struct{})
	rows.ringing = func() {
		cancel()
		<-failed
	}
	p := pair{caller: m.subscriber("ada"), callee: m.online("bob")}
	invite := calls.Command{Op: calls.Invite, Leg: p.caller.leg, To: "/private/bob", SDP: offer}
	if _, err := m.calls.Do(ctx, p.caller.Client, invite); !errors.Is(err, context.Canceled) {
		t.Errorf("beginning the call = %v, want %v", err, context.Canceled)
	}

	close(failed)
	eventually(t, "bob to stop ringing", func() bool { return len(m.received(calls.HungUp, p.callee)) == 1 })
	if got := p.call().Cause; got != calls.TemporaryFailure {
		t.Errorf("the call ended with %v, want %v", got, calls.TemporaryFailure)
	}
}
