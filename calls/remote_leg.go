package calls

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// A remoteLeg is a leg whose client is connected to this node but whose call is on another node.
type remoteLeg struct {
	node    string // the node that carries the call
	socket  Socket // the client's connection to this node
	holder  string // the holder of the client's token; see Client.holder
	project string
}

// remoteLegs holds all remote legs of this node's clients. It is safe for concurrent use.
type remoteLegs struct {
	mu   sync.Mutex
	legs map[legKey]remoteLeg
}

// add adds a leg, or replaces the entry for it.
func (r *remoteLegs) add(leg string, a remoteLeg) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.legs[legKey{a.project, leg}] = a
}

// addNew adds a leg unless there is an entry for it. It reports whether it has added the leg.
func (r *remoteLegs) addNew(leg string, a remoteLeg) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := legKey{a.project, leg}
	if _, known := r.legs[key]; known {
		return false
	}
	r.legs[key] = a
	return true
}

// find returns the entry for a leg, or the zero value.
func (r *remoteLegs) find(leg, project string) remoteLeg {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.legs[legKey{project, leg}]
}

// update replaces the entry for a holder's leg, unless the entry is no longer before: the leg may have
// been forgotten, or its client may have reconnected.
func (r *remoteLegs) update(leg string, before, a remoteLeg) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := legKey{a.project, leg}
	if now, known := r.legs[key]; known && now == before && now.holder == a.holder {
		r.legs[key] = a
	}
}

// take removes and returns the legs for which matches returns true.
func (r *remoteLegs) take(matches func(leg string, a remoteLeg) bool) map[legKey]remoteLeg {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := make(map[legKey]remoteLeg)
	for leg, a := range r.legs {
		if matches(leg.id, a) {
			found[leg] = a
			delete(r.legs, leg)
		}
	}
	return found
}

// forget removes a holder's leg, which has ended.
func (r *remoteLegs) forget(leg, holder string) {
	r.take(func(id string, a remoteLeg) bool { return id == leg && a.holder == holder })
}

// byNode returns all legs, grouped by the node that carries their call.
func (r *remoteLegs) byNode() map[string]map[legKey]remoteLeg {
	r.mu.Lock()
	defer r.mu.Unlock()
	nodes := make(map[string]map[legKey]remoteLeg)
	for leg, a := range r.legs {
		if nodes[a.node] == nil {
			nodes[a.node] = make(map[legKey]remoteLeg)
		}
		nodes[a.node][leg] = a
	}
	return nodes
}

func (r *remoteLegs) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.legs)
}

// Moved moves a client's legs to its new socket. If the socket is the same, it updates their token.
// The old socket may have been on any node. Legs of other holders are not moved.
func (c *Calls) Moved(ctx context.Context, from Socket, to Client) {
	c.movedHere(from, to)
	if from.ID != to.Socket.ID {
		go c.findLost(to)
	}
	if c.nodes == nil {
		return
	}

	holder := to.holder()
	owners := make(map[string]bool) // nodes to notify; false for this node
	moved := c.remote.take(func(_ string, a remoteLeg) bool { return a.socket.ID == from.ID && a.holder == holder })
	for leg, a := range moved {
		owners[a.node] = true
		a.socket = to.Socket
		c.remote.add(leg.id, a)
	}

	if from.ID != to.Socket.ID { // this node may know only some of the owners, or none
		for _, node := range c.runningNodes(ctx) {
			owners[node] = node != c.node
		}
	}

	for node, other := range owners {
		if other {
			c.nodes.Send(node, socketMovedMessage, socketMove{from, to})
		}
	}
}

// runningNodes returns the nodes that carry calls. If the database is unavailable, it returns all nodes
// that this node knows. A node that does not learn of the new socket would end the calls of its client.
func (c *Calls) runningNodes(ctx context.Context) []string {
	nodes, err := c.store.RunningNodes(ctx)
	if err == nil {
		return nodes
	}
	if ctx.Err() == nil {
		c.log.Error("finding the calls of a reconnected client", "error", err)
	}
	return c.peers.known()
}

// inviteAgainAfter is how long a client that has reconnected may take to answer before it gets the
// invitation again.
const inviteAgainAfter = 2 * time.Second

// movedHere moves the legs of calls on this node. A client with a new socket gets the invitation again
// if its leg continues to ring, because the invitation may have been lost with the old socket.
func (c *Calls) movedHere(from Socket, to Client) {
	isNew := from.ID != to.Socket.ID
	var moved []*leg
	if isNew {
		if unknown, ok := c.left.add(from, to); ok {
			moved = legsOf(c, unknown, to.holder())
		}
	}
	for _, l := range append(moved, legsOf(c, from, to.holder())...) {
		to := c.left.assign(to, l)
		l.call.post(func() {
			l.rebind(to)
			if isNew && l.isRinging() {
				l.inviteLater()
			}
		})
	}
	for _, l := range legsOf(c, Socket{}, to.holder()) { // legs of calls that this node has taken over
		c.tellLost(to.Socket, l.holder, to.Token.ProjectID, l.id)
	}
}

// legsOf returns the legs of a client that is connected through a socket. holder is the holder of the
// client's token.
func legsOf(c *Calls, s Socket, holder string) []*leg {
	return slices.DeleteFunc(c.legsAt(s), func(l *leg) bool { return l.holder != holder })
}

// Closed makes the legs of a closed socket on this node wait for their client to reconnect.
func (c *Calls) Closed(s Socket) {
	c.closedHere(s)
	owners := make(map[string]bool)
	for _, a := range c.remote.take(func(_ string, a remoteLeg) bool { return a.socket.ID == s.ID }) {
		owners[a.node] = true
	}
	for node := range owners {
		c.nodes.Send(node, socketClosedMessage, s)
	}
}

// closedHere does what Closed does for calls on this node. The socket may be on any node.
func (c *Calls) closedHere(s Socket) {
	for _, l := range c.legsAt(s) {
		l.call.post(func() {
			if l.client.Socket.ID == s.ID && l.socketLost.IsZero() {
				l.socketLost = time.Now()
			}
		})
	}
}

// loseNodes treats sockets on dead nodes as closed. It also notifies this node's clients that their
// calls on dead nodes have ended. If another node has taken a call over, its clients may still attach.
// loseNodes notifies them only after the call has ended on that node. If loseNodes cannot find out which
// node has a call, it returns an error, and the next loseNodes tries again.
func (c *Calls) loseNodes(ctx context.Context, dead map[string]bool) error {
	for _, l := range c.allLegs() {
		if s := l.at.Load().(Socket); dead[s.Node] {
			c.closedHere(s)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, reapFor)
	defer cancel()

	var unknown error // the first one
	for leg, a := range c.remote.take(func(_ string, a remoteLeg) bool { return dead[a.node] }) {
		r, err := c.store.FindLeg(ctx, a.project, leg.id)
		isUnknown := err != nil && !errors.Is(err, problem.NotFound)
		if isUnknown && unknown == nil {
			unknown = fmt.Errorf("finding the node of a call: %w", err)
		}
		if isUnknown || err == nil && !dead[r.Node] {
			c.remote.addNew(leg.id, a)
			continue
		}
		c.tell(a.socket, a.holder, Event{
			Kind:    HungUp,
			Project: a.project,
			Leg:     leg.id,
			Node:    c.node,
			At:      time.Now(),
			Cause:   NodeLost,
		})
	}
	return unknown
}

// sharedNodes returns the nodes that share calls with this node. They carry calls of this node's
// clients, or have clients with calls here. The result may contain a node twice.
func (c *Calls) sharedNodes() (nodes []string) {
	for _, l := range c.allLegs() {
		nodes = append(nodes, l.at.Load().(Socket).Node)
	}
	for node := range c.remote.byNode() {
		nodes = append(nodes, node)
	}
	return nodes
}
