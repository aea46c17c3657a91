package calls

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// The media of a call passes through one node, and is lost if the node dies. By themselves, clients
// notice this after 15 seconds or more. Nodes therefore watch each other and send clients [Lost]
// sooner. A client then attaches to its leg with a new offer. The first node that a client of
// either side reaches takes the call over, with the same ids and the same record.

// ErrTaken is returned for a change to a call or room session that another node has taken over.
var ErrTaken = errors.New("another node carries the call")

// pingEvery is the interval at which a node pings the nodes that carry its clients' calls.
const pingEvery = time.Second

// tellFor limits how long findLost may search for a client's lost calls.
const tellFor = 10 * time.Second

// takeOver makes this node carry the call that a client attaches to, if the node that carried it is
// lost, or if the call is an orphan. Otherwise it does nothing.
func (c *Calls) takeOver(ctx context.Context, client Client, leg string) error {
	c.taking.Lock()
	defer c.taking.Unlock()
	if c.legOf(client, leg) != nil {
		return nil // the other side attached first
	}

	r, err := c.store.FindLeg(ctx, client.Token.ProjectID, leg)
	if errors.Is(err, problem.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if !r.isHeldBy(client.Token, leg) {
		return nil
	}
	isLost := orphans{c}.has(r) || r.Node != c.node && c.peers.isLost(ctx, r.Node)
	if !isLost {
		return nil
	}
	if r.RoomSession != "" {
		return c.rooms.takeOver(ctx, r.ProjectID, r.RoomSession)
	}

	if r.CalleeLeg == "" && r.To.Address != EchoAddress {
		return nil // the call's script has ended with the lost node
	}
	if c.hasLegOf(r) {
		c.log.Warn("not taking over a call, because other calls use its ids", "call_id", r.ID)
		return nil
	}

	err = c.store.TakeCall(ctx, r, c.node)
	if errors.Is(err, ErrTaken) {
		return nil // another node has taken the call over, and forward finds that node
	}
	if err != nil {
		c.doubt.note(err)
		return err
	}

	c.log.Info("taking over a call from a lost node", "call_id", r.ID, "node", r.Node)
	r.Node = c.node
	c.revive(r, nil)
	return nil
}

// isHeldBy reports whether a leg of the call belongs to the holder of a token.
func (r Record) isHeldBy(t fabric.Token, leg string) bool {
	switch leg {
	case r.callerLeg():
		return isHeldBy(t, r.caller())
	case r.CalleeLeg:
		return t.Kind == fabric.SAT && t.SubscriberID == r.To.SubscriberID
	}
	return false
}

// caller returns the holder of the caller's token; see Client.holder.
func (r Record) caller() string {
	if r.Guest != "" {
		return r.Guest
	}
	return r.From.SubscriberID
}

// hasLegOf reports whether this node has a leg with the id of a call, or of one of the call's legs.
func (c *Calls) hasLegOf(r Record) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc([]string{r.ID, r.callerLeg(), r.CalleeLeg}, func(id string) bool {
		return c.legs[legKey{r.ProjectID, id}] != nil
	})
}

// revive adds a call that was answered on a lost node, in a room or outside a room. The call's
// clients have to attach to it.
func (c *Calls) revive(r Record, in *room) *call {
	k := &call{
		calls:   c,
		id:      r.ID,
		project: r.ProjectID,
		session: newID(),
		roomID:  r.To.AddressID,
		echo:    r.To.Address == EchoAddress,
		inRoom:  in,
		state:   InCall,
		record:  r,
	}
	if k.roomID == "" {
		k.roomID = newID()
	}

	k.box.Store(&mailbox{})
	if in != nil {
		k.box.Store(in.mailbox)
		k.session = in.session.ID
		k.roomID = in.session.RoomID
	}

	k.recordings.init(c, k, Recorded{Project: k.project, CallID: k.id})
	k.visible.Store(InCall)
	k.ringTimer = time.AfterFunc(c.limits.Ring, func() { k.post(ringer{k}.giveUp) })
	k.ringTimer.Stop()
	k.limitLength()

	caller := fabric.Token{Kind: fabric.SAT, SubscriberID: r.From.SubscriberID}
	if r.Guest != "" {
		caller = fabric.Token{Kind: fabric.Guest, ID: r.Guest, FamilyID: r.Guest}
	}
	k.addAbsent(k.newAbsentLeg(r.callerLeg(), caller, r.From, r.CallerControls))
	if r.CalleeLeg != "" {
		callee := fabric.Token{Kind: fabric.SAT, SubscriberID: r.To.SubscriberID}
		k.addAbsent(k.newAbsentLeg(r.CalleeLeg, callee, r.To, r.CalleeControls))
	}

	c.mu.Lock()
	c.calls[k.key()] = k
	c.mu.Unlock()
	k.resumeRecording()
	return k
}

// newAbsentLeg returns a member's leg whose client has not reconnected yet. t takes the place of
// the client's real token, which is unknown until the client reconnects. Revocations of earlier
// tokens do not end the leg.
func (k *call) newAbsentLeg(id string, t fabric.Token, p Party, c Controls) *leg {
	t.ProjectID = k.project
	t.IssuedAt = time.Now()
	l := k.newLeg(id, Client{Token: t}, p)
	l.active = true
	l.socketLost = l.mediaLost
	l.restore(c)
	return l
}

// addAbsent adds a leg whose client has not reconnected yet.
func (k *call) addAbsent(l *leg) {
	l.inbound = l.id != k.id
	if k.addLeg(l) && l.inbound {
		k.uncountRinging(l)
	}
}

// WatchNodes sends [Lost] to this node's clients when the nodes that carry their calls are lost. It
// returns when ctx is done.
func (c *Calls) WatchNodes(ctx context.Context) {
	if c.nodes == nil {
		return
	}
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()

	notified := make(map[string]bool) // the lost nodes whose clients have been notified
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}

		legs := c.remote.byNode()
		maps.DeleteFunc(notified, func(node string, _ bool) bool { return legs[node] == nil })
		for node, legsThere := range legs {
			before := notified[node]
			notified[node] = c.peers.isLost(ctx, node)
			if before || !notified[node] {
				continue
			}
			for leg, a := range legsThere {
				c.tellLost(a.socket, a.holder, a.project, leg.id)
			}
		}
	}
}

// tellLost notifies a client that its leg's node is lost.
func (c *Calls) tellLost(to Socket, holder, project, leg string) {
	c.tell(to, holder, Event{Kind: Lost, Project: project, Leg: leg, Node: c.node, At: time.Now()})
}

// maxLost is how many of a client's calls are checked when the client reconnects, newest first.
const maxLost = 20

// findLost sends [Lost] to a client that reopened its socket, once for each of its legs on a lost
// node.
func (c *Calls) findLost(client Client) {
	ctx, cancel := context.WithTimeout(context.Background(), tellFor)
	defer cancel()
	var running []Record
	for _, filter := range callsOf(client) {
		found, err := c.store.ListCalls(ctx, client.Token.ProjectID, filter, page.Query{Size: maxLost})
		if err != nil {
			c.log.Error("finding the lost calls of a client", "error", err)
			return
		}
		running = append(running, found.Items...)
	}

	for _, r := range running {
		lost := r.Node != c.node && c.peers.isLost(ctx, r.Node)
		for _, leg := range []string{r.callerLeg(), r.CalleeLeg} {
			if r.isHeldBy(client.Token, leg) && c.lacksMedia(client, leg, lost) {
				c.tellLost(client.Socket, client.holder(), r.ProjectID, leg)
			}
		}
	}
}

// callsOf returns the filters for the answered calls of a client. Records from earlier versions of
// the server contain the id of a guest's token; see [isHeldBy].
func callsOf(client Client) []Filter {
	t := client.Token
	if t.Kind == fabric.SAT {
		return []Filter{{State: InCall, Subscribers: []string{t.SubscriberID}}}
	}
	filters := []Filter{{State: InCall, Guest: client.holder()}}
	if t.Kind == fabric.Guest && t.ID != client.holder() {
		filters = append(filters, Filter{State: InCall, Guest: t.ID})
	}
	return filters
}

// lacksMedia reports whether a leg has no media. lost is true if the leg's node was lost. Even
// then, this node may have taken the call over in the meantime, because the other side reconnected.
func (c *Calls) lacksMedia(client Client, leg string, lost bool) bool {
	if l := c.legOf(client, leg); l != nil {
		return l.at.Load().(Socket) == Socket{}
	}
	return lost
}
