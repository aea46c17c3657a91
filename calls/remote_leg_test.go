package calls

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// TestRemoteLegs shows that legs of two projects on other nodes are kept apart, even if their
// clients chose the same id.
func TestRemoteLegs(t *testing.T) {
	c := New(Config{})
	c.remote.add("1", remoteLeg{node: "a", holder: "alice", project: "p"})
	c.remote.add("1", remoteLeg{node: "b", holder: "mallory", project: "q"})
	if n := c.Stats().Elsewhere; n != 2 {
		t.Errorf("%d legs are known, want 2", n)
	}

	c.remote.forget("1", "mallory")
	legs := c.remote.byNode()
	if len(legs) != 1 {
		t.Errorf("the legs that are left are %v, want those of one node", legs)
	}
	if len(legs["a"]) != 1 {
		t.Errorf("the legs that are left on node a are %v, want alice's", legs["a"])
	}
}

// A reconnectedStore is a store in which two nodes carry calls. It has no calls to list. If err is not
// nil, the store is unavailable.
type reconnectedStore struct {
	Store
	err error
}

func (s reconnectedStore) RunningNodes(context.Context) ([]string, error) {
	return []string{"a", "b"}, s.err
}

func (reconnectedStore) ListCalls(context.Context, string, Filter, page.Query) (page.Page[Record], error) {
	return page.Page[Record]{}, nil
}

// sentNodes records to which nodes a message was sent.
type sentNodes map[string]bool

func (n sentNodes) Send(node, _ string, _ any)                                               { n[node] = true }
func (sentNodes) Ask(context.Context, string, string, any, any) error                        { return nil }
func (sentNodes) Handle(string, func(context.Context, string, json.RawMessage) (any, error)) {}

// TestMoved shows that a client that reconnects is reported to all nodes with calls, even if an event
// has already told its node about one of them. If the database is unavailable, the client is reported
// to all nodes that its node has heard from.
func TestMoved(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want sentNodes
	}{
		"available":   {nil, sentNodes{"a": true, "b": true}},
		"unavailable": {errors.New("the database is unavailable"), sentNodes{"a": true, "c": true}},
	} {
		nodes := sentNodes{}
		c := New(Config{
			Node:  "self",
			Nodes: nodes,
			Store: reconnectedStore{err: tt.err},
			Log:   slog.New(slog.DiscardHandler),
		})
		c.peers.noteAlive("c", time.Now())
		lost := Socket{Node: "self", ID: "lost"}
		c.Closed(lost)
		c.remote.add("1", remoteLeg{node: "a", socket: lost, holder: "alice", project: "p"})
		alice := fabric.Token{Kind: fabric.SAT, ProjectID: "p", SubscriberID: "alice"}
		c.Moved(t.Context(), lost, Client{Token: alice, Socket: Socket{Node: "self", ID: "new"}})
		if !maps.Equal(nodes, tt.want) {
			t.Errorf("%s: the nodes %v were told, want %v", name, nodes, tt.want)
		}
	}
}

// movingNodes are nodes that call moving while they carry out a command.
type movingNodes struct {
	sentNodes
	moving func()
}

func (n movingNodes) Ask(context.Context, string, string, any, any) error {
	n.moving()
	return nil
}

// TestMovedMeanwhile shows that the node of a call is notified when a client closes its new socket, even
// if the client got the socket while its last command was carried out.
func TestMovedMeanwhile(t *testing.T) {
	alice := Client{
		Token:  fabric.Token{Kind: fabric.SAT, ProjectID: "p", SubscriberID: "alice"},
		Socket: Socket{Node: "self", ID: "old"},
	}
	moved := alice
	moved.Socket.ID = "new"
	var c *Calls
	nodes := movingNodes{
		sentNodes: sentNodes{},
		moving:    func() { c.Moved(t.Context(), alice.Socket, moved) },
	}
	c = New(Config{Node: "self", Nodes: nodes, Store: reconnectedStore{}})
	command := clientCommand{Client: alice, Command: Command{Op: Hold, Leg: "1", Node: "a"}}
	if err := sendCommand(t.Context(), c, "a", commandMessage, command, &Reply{}); err != nil {
		t.Fatal(err)
	}

	clear(nodes.sentNodes)
	c.Closed(moved.Socket)
	if want := (sentNodes{"a": true}); !maps.Equal(nodes.sentNodes, want) {
		t.Errorf("the nodes %v were told, want %v", nodes.sentNodes, want)
	}
}

// A movedStore is a store in which another node carries one call. All other calls have ended. If err is
// not nil, the store is unavailable.
type movedStore struct {
	Store
	leg, node string
	err       error
}

func (s movedStore) FindLeg(_ context.Context, _, leg string) (Record, error) {
	if s.err != nil {
		return Record{}, s.err
	}
	if leg == s.leg {
		return Record{Node: s.node}, nil
	}
	return Record{}, problem.NoSuch("call")
}

// hungUpClients records which legs have ended.
type hungUpClients map[string]bool

func (c hungUpClients) Tell(_ Socket, e Event) { c[e.Leg] = e.Kind == HungUp }

// TestLoseNodes shows that a client is not told that its call has ended if another node has taken the
// call over from a dead node, or if the database is unavailable. It is notified once the call has ended.
func TestLoseNodes(t *testing.T) {
	told := hungUpClients{}
	c := New(Config{Clients: told, Store: movedStore{leg: "1", node: "alive"}})
	dead := map[string]bool{"dead": true}
	for _, leg := range []string{"1", "2"} {
		c.remote.add(leg, remoteLeg{node: "dead", holder: "alice", project: "p"})
	}
	errUnavailable := errors.New("the database is unavailable")
	loseNodes := func(want error) {
		t.Helper()
		if err := c.loseNodes(t.Context(), dead); !errors.Is(err, want) {
			t.Errorf("loseNodes = %v, want %v", err, want)
		}
		if told["1"] {
			t.Error("the client was notified that its call has ended, but another node carries the call now")
		}
	}
	loseNodes(nil)
	if !told["2"] {
		t.Error("the client was not notified that its call on a dead node has ended")
	}

	c.store = movedStore{err: errUnavailable}
	loseNodes(errUnavailable)
	c.store = movedStore{}
	if err := c.loseNodes(t.Context(), dead); err != nil {
		t.Errorf("loseNodes = %v", err)
	}
	if !told["1"] {
		t.Error("the client was not notified that its call has ended on the other node")
	}
	if n := c.Stats().Elsewhere; n != 0 {
		t.Errorf("%d legs on other nodes are known, want none", n)
	}
}
