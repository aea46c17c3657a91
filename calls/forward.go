package calls

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/problem"
)

// Each call is carried by one node, its owner. Unless the call was taken over, this is the node to
// which the caller's socket is connected or, for members of a room, the room's node. Other nodes
// forward their clients' commands to the owner, and the owner sends events for those clients back.
// Media does not pass through other nodes, because browsers send it directly to the owner.

// Nodes exchanges messages with the other nodes; see package bus.
type Nodes interface {
	// Send sends a message without waiting. A message may be lost, but messages never arrive out of
	// order.
	Send(node, kind string, v any)
	// Ask sends a request, waits for the answer, and decodes it into answer.
	Ask(ctx context.Context, node, kind string, v, answer any) error
	// Handle sets the handler for messages of one kind from other nodes.
	Handle(kind string, h NodeHandler)
}

// A NodeHandler handles a message from another node. If the message is a request, the results are
// its answer.
type NodeHandler = func(ctx context.Context, from string, body json.RawMessage) (answer any, err error)

// The kinds of requests between nodes, in addition to pingMessage.
const (
	commandMessage  = "call.command" // carries a clientCommand; the answer is a Reply
	joinRoomMessage = "call.join"    // carries a clientCommand, to join a room; the answer is a Reply
	moveCallMessage = "call.move"    // carries a moveRequest; the answer is empty
)

// The kinds of messages without an answer.
const (
	deliveryMessage     = "call.event"  // carries a delivery
	broadcastMessage    = "call.events" // carries a broadcast
	socketMovedMessage  = "call.moved"  // carries a socketMove
	socketClosedMessage = "call.closed" // carries a Socket
)

// A clientCommand is a command of another node's client.
type clientCommand struct {
	Client  Client
	Command Command
}

// A delivery is an event for one client of another node.
type delivery struct {
	To     Socket
	Holder string // identifies whose leg the event is about; see Client.holder
	Event  Event
}

// A broadcast is an event for many clients of a node.
type broadcast struct {
	To    []recipient
	Event Event
}

// A recipient holds what differs between the clients that receive the same event.
type recipient struct {
	To          Socket
	Holder      string // see delivery
	Leg, Member string
	Inbound     bool `json:",omitempty"`
	Created     time.Time
}

// maxRecipients is the maximum number of recipients of a broadcast.
const maxRecipients = 200

// A socketMove reports that a client has a new socket.
type socketMove struct {
	From Socket
	To   Client
}

// errNotHere is the answer of a node that does not have the leg, call or room of a request.
var errNotHere = problem.NoSuch("leg")

// A nodeServer handles messages from other nodes.
type nodeServer struct{ calls *Calls }

// register makes s the handler of the messages that n receives.
func (s nodeServer) register(n Nodes) {
	n.Handle(commandMessage, requestHandler(s.execute))
	n.Handle(joinRoomMessage, requestHandler(s.joinRoom))
	n.Handle(moveCallMessage, requestHandler(s.moveCall))
	n.Handle(pingMessage, func(context.Context, string, json.RawMessage) (any, error) { return struct{}{}, nil })

	n.Handle(deliveryMessage, messageHandler(s.deliver))
	n.Handle(broadcastMessage, messageHandler(s.deliverBroadcast))
	n.Handle(socketMovedMessage, messageHandler(func(_ string, m socketMove) { s.calls.movedHere(m.From, m.To) }))
	n.Handle(socketClosedMessage, messageHandler(func(_ string, closed Socket) { s.calls.closedHere(closed) }))
}

// requestHandler returns a handler that answers requests with the results of do.
func requestHandler[T, A any](do func(context.Context, T) (A, error)) NodeHandler {
	return func(ctx context.Context, _ string, body json.RawMessage) (any, error) {
		var request T
		if err := json.Unmarshal(body, &request); err != nil {
			return nil, fmt.Errorf("decoding a request: %w", err)
		}
		return do(ctx, request)
	}
}

// messageHandler returns a handler for messages that have no answer.
func messageHandler[T any](do func(from string, message T)) NodeHandler {
	return func(_ context.Context, from string, body json.RawMessage) (any, error) {
		var message T
		if err := json.Unmarshal(body, &message); err != nil {
			return nil, fmt.Errorf("decoding a message: %w", err)
		}
		do(from, message)
		return nil, nil
	}
}

// execute executes a command for a leg of this node.
func (s nodeServer) execute(ctx context.Context, f clientCommand) (Reply, error) {
	if !s.calls.isHere(f.Client, f.Command) {
		return Reply{}, errNotHere
	}
	reply, err := s.calls.doHere(ctx, f.Client, f.Command)
	reply.Node = s.calls.node
	return reply, err
}

// joinRoom makes a client a member of a room of this node.
func (s nodeServer) joinRoom(ctx context.Context, f clientCommand) (Reply, error) {
	reply, err := s.calls.invite(ctx, f.Client, f.Command, onThisNode)
	reply.Node = s.calls.node
	return reply, err
}

// moveCall moves a call of this node. The audit log attributes the move to the origin of the request.
func (s nodeServer) moveCall(ctx context.Context, m moveRequest) (struct{}, error) {
	return struct{}{}, s.calls.moveHere(audit.With(ctx, &m.Origin), m)
}

// deliver passes an event from another node to its client.
func (s nodeServer) deliver(from string, d delivery) {
	s.calls.peers.noteAlive(from, time.Now())
	if d.Event.Kind == HungUp {
		s.calls.remote.forget(d.Event.Leg, d.Holder)
	} else {
		s.calls.remote.add(d.Event.Leg, remoteLeg{
			node:    from,
			socket:  d.To,
			holder:  d.Holder,
			project: d.Event.Project,
		})
	}
	s.calls.clients.Tell(d.To, d.Event)
}

// deliverBroadcast passes an event from another node to its clients.
func (s nodeServer) deliverBroadcast(from string, b broadcast) {
	for _, to := range b.To {
		e := b.Event
		e.Leg = to.Leg
		e.MemberID = to.Member
		e.Inbound = to.Inbound
		e.Created = to.Created
		s.deliver(from, delivery{To: to.To, Holder: to.Holder, Event: e})
	}
}

// tellAll sends the same event to the clients of legs, which are all in the same room or call. Each
// other node gets one message instead of one for each client. Otherwise, a change of all members of
// a large room would fill the queue between the nodes.
func (c *Calls) tellAll(legs []*leg, e Event) {
	elsewhere := make(map[string][]recipient) // by node
	for _, l := range legs {
		node := l.client.Socket.Node
		if node == "" || node == c.node || c.nodes == nil {
			l.tell(e)
		} else if !l.call.takenOver {
			elsewhere[node] = append(elsewhere[node], recipient{
				To:      l.client.Socket,
				Holder:  l.holder,
				Leg:     l.id,
				Member:  l.member.ID,
				Inbound: l.inbound,
				Created: l.call.record.Created,
			})
		}
	}

	for node, to := range elsewhere {
		first := legs[0].call // the other legs have the same project and room
		e.Project = first.project
		e.Node = c.node
		e.At = time.Now()
		e.RoomSession = first.session
		e.RoomID = first.roomID
		for some := range slices.Chunk(to, maxRecipients) {
			c.nodes.Send(node, broadcastMessage, broadcast{To: some, Event: e})
		}
	}
}

// tell sends an event to a socket on any node. holder identifies whose leg the event is about; see
// Client.holder.
func (c *Calls) tell(to Socket, holder string, e Event) {
	switch {
	case to.Node == c.node || to.Node == "":
		c.clients.Tell(to, e)
	case c.nodes != nil:
		c.nodes.Send(to.Node, deliveryMessage, delivery{To: to, Holder: holder, Event: e})
	}
}

// isHere reports whether this node has the leg of a command. For a new screen or device, it reports
// whether this node has the leg of the member.
func (c *Calls) isHere(client Client, cmd Command) bool {
	if c.legOf(client, cmd.Leg) != nil {
		return true
	}
	return addsSource(cmd) && c.legOf(client, cmd.Parent) != nil
}

// addsSource reports whether a command adds a screen or a device to a member.
func addsSource(cmd Command) bool {
	return cmd.Op == Invite && (cmd.Type == Screen || cmd.Type == Device)
}

// isElsewhere reports whether another node may have the leg of a command.
func (c *Calls) isElsewhere(client Client, cmd Command) bool {
	if c.isHere(client, cmd) {
		return false
	}
	if cmd.Op == Invite {
		return cmd.Attach || addsSource(cmd)
	}
	return cmd.Node != "" && cmd.Node != c.node
}

// forward passes a command on to the node that has the leg. If no node has the leg, handled is
// false.
func (c *Calls) forward(ctx context.Context, client Client, cmd Command) (r Reply, handled bool, err error) {
	owners, err := c.owners(ctx, client, cmd)
	if err != nil {
		return Reply{}, false, err
	}

	for _, node := range owners {
		if node == c.node {
			continue
		}
		alive, err := c.peers.isAlive(ctx, node)
		if err != nil {
			return Reply{}, false, err
		}
		if !alive {
			continue
		}

		err = sendCommand(ctx, c, node, commandMessage, clientCommand{client, cmd}, &r)
		if errors.Is(err, problem.NotFound) {
			continue
		}
		return r, true, err
	}
	return Reply{}, false, nil
}

// sendCommand asks a node to carry out a client's command, and records that the node has the leg. It
// records this before the node gets the command, because the event that reports the end of the leg
// may arrive before the reply.
func sendCommand(ctx context.Context, c *Calls, node, kind string, f clientCommand, reply *Reply) error {
	holder := f.Client.holder()
	leg := remoteLeg{
		node:    node,
		socket:  f.Client.Socket,
		holder:  holder,
		project: f.Client.Token.ProjectID,
	}
	if present := c.left.find(f.Client); present.Node == c.node { // only these sockets are closed here
		leg.socket = present
	}
	isNew := c.remote.addNew(f.Command.Leg, leg)
	before := c.remote.find(f.Command.Leg, leg.project)
	err := c.nodes.Ask(ctx, node, kind, f, reply)
	switch {
	case err == nil && f.Command.Op == Hangup: // no event reports the end of this leg
		c.remote.forget(f.Command.Leg, holder)
	case err == nil:
		c.remote.update(f.Command.Leg, before, leg)
	case isNew:
		c.remote.forget(f.Command.Leg, holder)
	}
	return err
}

// owners returns the nodes that may have the leg of a command. A client that reconnects after a
// reload does not know the leg's node. If the leg has no record, owners returns all nodes that have
// calls. A search for the leg of an Invite counts against the rate limit for dialing.
func (c *Calls) owners(ctx context.Context, client Client, cmd Command) ([]string, error) {
	if cmd.Op == Invite {
		if err := c.counts().admitSearch(client); err != nil {
			return nil, err
		}
	}
	if cmd.Node != "" && cmd.Node != c.node {
		if !isCanonical(cmd.Node) {
			return nil, nil
		}
		return []string{cmd.Node}, nil
	}

	leg := cmd.Leg
	if addsSource(cmd) {
		leg = cmd.Parent
	}
	if isCanonical(leg) {
		r, err := c.store.FindLeg(ctx, client.Token.ProjectID, leg)
		if err == nil {
			return []string{r.Node}, nil
		}
		if !errors.Is(err, problem.NotFound) {
			return nil, err
		}
	}
	return c.store.RunningNodes(ctx)
}

// isCanonical reports whether an id from a client is a UUID in the form that this server writes.
func isCanonical(id string) bool {
	u, err := uuid.Parse(id)
	return err == nil && u.String() == id
}
