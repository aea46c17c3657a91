package calls

import (
	"context"
	"time"
)

// An away is a leg of a client of this node that another node has.
type away struct {
	node    string
	socket  Socket
	holder  string // as in leg
	project string
}

func (c *Calls) noteAway(leg string, a away) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.away[leg] = a
}

// takeAway returns the legs that other nodes have and that match, by their ids, and forgets them.
func (c *Calls) takeAway(matches func(leg string, a away) bool) map[string]away {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := make(map[string]away)
	for leg, a := range c.away {
		if matches(leg, a) {
			found[leg] = a
			delete(c.away, leg)
		}
	}
	return found
}

// forgetAway forgets a leg of a holder, which has ended.
func (c *Calls) forgetAway(leg, holder string) {
	c.takeAway(func(id string, a away) bool { return id == leg && a.holder == holder })
}

// Moved moves the legs of a client to its new socket, or gives them its new token on the same
// socket. The old socket may have been on any node. Legs of other holders stay where they are.
func (c *Calls) Moved(ctx context.Context, from Socket, to Client) {
	c.movedHere(from, to)
	if from.ID != to.Socket.ID {
		go c.findLost(to)
	}
	if c.nodes == nil {
		return
	}
	holder, owners := to.Token.Caller(), make(map[string]bool)
	moved := c.takeAway(func(_ string, a away) bool { return a.socket.ID == from.ID && a.holder == holder })
	for leg, a := range moved {
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

func (c *Calls) movedHere(from Socket, to Client) {
	for _, l := range c.legsAt(from) {
		if l.holder == to.Token.Caller() {
			l.call.post(func() { l.rebind(to) })
		}
	}
	for _, l := range c.legsAt(Socket{}) { // of calls that this node has taken over
		if l.holder == to.Token.Caller() {
			c.tellLost(to.Socket, l.holder, to.Token.ProjectID, l.id)
		}
	}
}

// Closed lets the legs of a closed socket of this node wait for their client to come back.
func (c *Calls) Closed(s Socket) {
	c.closedHere(s)
	owners := make(map[string]bool)
	for _, a := range c.takeAway(func(_ string, a away) bool { return a.socket.ID == s.ID }) {
		owners[a.node] = true
	}
	for node := range owners {
		c.nodes.Send(node, closedMessage, s)
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

// lose treats the sockets of dead nodes as closed, and ends the legs of this node's clients that
// dead nodes had.
func (c *Calls) lose(dead map[string]bool) {
	for _, l := range c.allLegs() {
		if s := l.at.Load().(Socket); dead[s.Node] {
			c.closedHere(s)
		}
	}
	for leg, a := range c.takeAway(func(_ string, a away) bool { return dead[a.node] }) {
		c.tell(a.socket, a.holder, Event{Kind: HungUp, Project: a.project, Leg: leg, Node: c.node, At: time.Now(),
			Cause: NodeLost})
	}
}

// partners returns the nodes that this one shares calls with. Some may be named twice.
func (c *Calls) partners() (nodes []string) {
	for _, l := range c.allLegs() {
		nodes = append(nodes, l.at.Load().(Socket).Node)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.away {
		nodes = append(nodes, a.node)
	}
	return nodes
}
