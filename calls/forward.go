package calls

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// A call lives on one node, its owner: the one of the caller's socket. Other nodes pass the
// commands of their clients on to it, and it sends the events of those clients back. Media needs
// no node in between: browsers send it straight to the owner.

// Nodes reaches the other nodes; see package bus.
type Nodes interface {
	// Send sends a message without waiting. It may be lost, but never overtakes an earlier one.
	Send(node, kind string, v any)
	// Ask sends a request and decodes its answer.
	Ask(ctx context.Context, node, kind string, v, answer any) error
	// Handle says what becomes of messages from other nodes.
	Handle(kind string, h func(ctx context.Context, from string, body json.RawMessage) (any, error))
}

// The kinds of messages between nodes.
const (
	commandMessage = "call.command" // a forwarded; answered by a Reply
	eventMessage   = "call.event"   // a delivery
	movedMessage   = "call.moved"   // a move
	closedMessage  = "call.closed"  // a Socket
)

type forwarded struct {
	Client  Client
	Command Command
}

type delivery struct {
	To    Socket
	Event Event
}

type move struct {
	From Socket
	To   Client
}

// errNotHere is the answer of a node that does not have the leg of a command.
var errNotHere = problem.NoSuch("leg")

// join makes this node one of several.
func (c *Calls) join(n Nodes) {
	n.Handle(commandMessage, func(ctx context.Context, from string, body json.RawMessage) (any, error) {
		var f forwarded
		if err := json.Unmarshal(body, &f); err != nil {
			return nil, fmt.Errorf("decoding a command: %w", err)
		}
		if !c.isHere(f.Client, f.Command) {
			return nil, errNotHere
		}
		r, err := c.doHere(ctx, f.Client, f.Command)
		r.Node = c.node
		return r, err
	})
	n.Handle(eventMessage, handler(func(from string, d delivery) {
		if d.Event.Kind == HungUp {
			c.forgetAway(d.Event.Leg)
		} else {
			c.noteAway(d.Event.Leg, away{from, d.To, d.Event.Project})
		}
		c.clients.Tell(d.To, d.Event)
	}))
	n.Handle(movedMessage, handler(func(_ string, m move) { c.movedHere(m.From, m.To) }))
	n.Handle(closedMessage, handler(func(_ string, s Socket) { c.closedHere(s) }))
}

// handler returns a handler of messages that have no answer.
func handler[T any](do func(from string, v T)) func(context.Context, string, json.RawMessage) (any, error) {
	return func(_ context.Context, from string, body json.RawMessage) (any, error) {
		var v T
		if err := json.Unmarshal(body, &v); err != nil {
			return nil, fmt.Errorf("decoding a message: %w", err)
		}
		do(from, v)
		return nil, nil
	}
}

// tell sends an event to a socket of any node.
func (c *Calls) tell(to Socket, e Event) {
	switch {
	case to.Node == c.node || to.Node == "":
		c.clients.Tell(to, e)
	case c.nodes != nil:
		c.nodes.Send(to.Node, eventMessage, delivery{to, e})
	}
}

// isHere reports whether this node has the leg that a command is for. The leg of a new screen or
// device is its member's.
func (c *Calls) isHere(client Client, cmd Command) bool {
	return c.legOf(client, cmd.Leg) != nil || isSource(cmd) && c.legOf(client, cmd.Parent) != nil
}

func isSource(cmd Command) bool {
	return cmd.Op == Invite && (cmd.Type == Screen || cmd.Type == Device)
}

// isElsewhere reports whether another node may have the leg that a command is for.
func (c *Calls) isElsewhere(client Client, cmd Command) bool {
	if c.isHere(client, cmd) {
		return false
	}
	if cmd.Op == Invite {
		return cmd.Attach || isSource(cmd)
	}
	return cmd.Node != "" && cmd.Node != c.node
}

// forward passes a command on to the node that has the leg. A client that has come back after a
// reload does not know which one that is. handled is false if no node has the leg.
func (c *Calls) forward(ctx context.Context, client Client, cmd Command) (r Reply, handled bool, err error) {
	owners := []string{cmd.Node}
	if cmd.Node == "" || cmd.Node == c.node {
		if owners, err = c.store.RunningNodes(ctx); err != nil {
			return Reply{}, false, err
		}
	}
	for _, node := range owners {
		if node == c.node || !c.isAlive(ctx, node) {
			continue
		}
		err = c.nodes.Ask(ctx, node, commandMessage, forwarded{client, cmd}, &r)
		if errors.Is(err, problem.NotFound) {
			continue
		}
		if err == nil && cmd.Op != Hangup {
			c.noteAway(cmd.Leg, away{node, client.Socket, client.Token.ProjectID})
		}
		return r, true, err
	}
	return Reply{}, false, nil
}

// isAlive reports whether a node has renewed its entry in time. If the sessions cannot be read, it is
// taken for alive.
func (c *Calls) isAlive(ctx context.Context, node string) bool {
	_, err := c.sessions.Get(ctx, nodeKey(node))
	return !errors.Is(err, problem.NotFound)
}

// An away is a leg of a client of this node that another node has.
type away struct {
	node    string
	socket  Socket
	project string
}

func (c *Calls) noteAway(leg string, a away) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.away[leg] = a
}

func (c *Calls) forgetAway(leg string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.away, leg)
}

// takeAway returns the legs that other nodes have and that match, by their ids, and forgets them.
func (c *Calls) takeAway(matches func(away) bool) map[string]away {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := make(map[string]away)
	for leg, a := range c.away {
		if matches(a) {
			found[leg] = a
			delete(c.away, leg)
		}
	}
	return found
}

// Moved moves the legs of a client to its new socket, or gives them its new token on the same
// socket. The old socket may have been on any node.
func (c *Calls) Moved(ctx context.Context, from Socket, to Client) {
	c.movedHere(from, to)
	if c.nodes == nil {
		return
	}
	owners := make(map[string]bool)
	for leg, a := range c.takeAway(func(a away) bool { return a.socket.ID == from.ID }) {
		owners[a.node] = true
		a.socket = to.Socket
		c.noteAway(leg, a)
	}
	if from.ID != to.Socket.ID && len(owners) == 0 { // it was on another node, so its legs are not known
		for _, node := range c.runningNodes(ctx) {
			owners[node] = node != c.node
		}
	}
	for node, other := range owners {
		if other {
			c.nodes.Send(node, movedMessage, move{from, to})
		}
	}
}

// runningNodes returns the nodes that carry calls.
func (c *Calls) runningNodes(ctx context.Context) []string {
	nodes, err := c.store.RunningNodes(ctx)
	if err != nil && ctx.Err() == nil {
		c.log.Error("finding the calls of a client that has come back", "error", err)
	}
	return nodes
}

// Closed lets the legs of a closed socket of this node wait for their client to come back.
func (c *Calls) Closed(s Socket) {
	c.closedHere(s)
	owners := make(map[string]bool)
	for _, a := range c.takeAway(func(a away) bool { return a.socket.ID == s.ID }) {
		owners[a.node] = true
	}
	for node := range owners {
		c.nodes.Send(node, closedMessage, s)
	}
}

// checkNodes treats the sockets of dead nodes as closed, and ends the legs that dead nodes had.
func (c *Calls) checkNodes(ctx context.Context) {
	known := map[string]bool{c.node: true, "": true}
	alive := func(node string) bool {
		if _, asked := known[node]; !asked {
			known[node] = c.isAlive(ctx, node)
		}
		return known[node]
	}
	for _, l := range c.allLegs() {
		if s := l.at.Load().(Socket); !alive(s.Node) {
			c.closedHere(s)
		}
	}

	for _, node := range c.awayNodes() {
		if alive(node) {
			continue
		}
		for leg, a := range c.takeAway(func(a away) bool { return a.node == node }) {
			c.tell(a.socket, Event{Kind: HungUp, Project: a.project, Leg: leg, Node: c.node, At: time.Now(),
				Cause: NodeLost})
		}
	}
}

// awayNodes returns the nodes that have legs of this node's clients.
func (c *Calls) awayNodes() (nodes []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.away {
		if !slices.Contains(nodes, a.node) {
			nodes = append(nodes, a.node)
		}
	}
	return nodes
}

func (c *Calls) movedHere(from Socket, to Client) {
	for _, l := range c.legsAt(from) {
		if l.holder == to.Token.Caller() {
			l.call.post(func() { l.rebind(to) })
		}
	}
}

func (c *Calls) closedHere(s Socket) {
	for _, l := range c.legsAt(s) {
		l.call.post(func() {
			if l.client.Socket.ID == s.ID && l.socketLost.IsZero() {
				l.socketLost = time.Now()
			}
		})
	}
}
