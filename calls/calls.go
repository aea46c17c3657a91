package calls

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/session"
)

// Config holds the dependencies of Calls.
type Config struct {
	Fabric   *fabric.Fabric
	Engine   Engine
	Clients  Clients
	Store    Store
	Rooms    RoomStore
	Sessions session.Store
	Nodes    Nodes // nil if this is the only node

	// Phones returns the phones that ring for a subscriber of a project. It is nil if the server
	// has no phones.
	Phones func(ctx context.Context, projectID, subscriberID string) ([]Phone, error)

	// Trunk connects with SIP gateways. It is nil if the server has no SIP.
	Trunk Trunk

	// Scripts decides what happens in calls to scripts. If Scripts is nil, these calls are refused.
	Scripts Scripts

	// Recorder records calls. IsRecorded reports whether to record a call from its beginning. Both
	// are nil if the server has no storage for recordings.
	Recorder   Recorder
	IsRecorded func(ctx context.Context, r Record) (bool, error)
	RecordTone time.Duration // interval of the tone in recorded calls; 0 means no tone

	Node   string       // the name of this node
	Log    *slog.Logger // nil means slog.Default()
	Meter  Meter        // nil means that nothing is measured
	Limits Limits
}

// Clients sends events to clients. Each client receives the events of a leg in order.
type Clients interface {
	// Tell sends an event to a client. It does not block. An event for a socket that is
	// closed is dropped.
	Tell(to Socket, e Event)
}

// Calls holds the calls that this node carries. It is safe for concurrent use.
type Calls struct {
	*Records

	fabric     *fabric.Fabric
	engine     Engine
	clients    Clients
	store      Store
	sessions   session.Store
	nodes      Nodes // nil if this is the only node
	phones     func(ctx context.Context, projectID, subscriberID string) ([]Phone, error)
	trunk      Trunk
	scripts    Scripts
	recorder   Recorder
	isRecorded func(ctx context.Context, r Record) (bool, error)
	recordTone time.Duration
	node       string
	log        *slog.Logger
	meter      Meter
	limits     Limits

	rooms  *openRooms
	peers  *peers
	remote remoteLegs
	left   leftSockets
	taking sync.Mutex // held while calls of lost nodes are taken over
	ends   unwritten[callEnd]
	doubt  doubt

	slowness slowness

	mu       sync.Mutex
	draining bool
	calls    map[legKey]*call // calls by the leg that dialed
	legs     map[legKey]*leg
	accounts map[string]*activity // by the id of the account
	projects map[string]int       // number of legs by project
}

// New returns Calls without any calls.
func New(cfg Config) *Calls {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if cfg.Meter == nil {
		cfg.Meter = unmetered{}
	}

	c := &Calls{
		Records:    NewRecords(cfg.Store),
		fabric:     cfg.Fabric,
		engine:     cfg.Engine,
		clients:    cfg.Clients,
		store:      cfg.Store,
		sessions:   cfg.Sessions,
		nodes:      cfg.Nodes,
		phones:     cfg.Phones,
		trunk:      cfg.Trunk,
		scripts:    cfg.Scripts,
		recorder:   cfg.Recorder,
		isRecorded: cfg.IsRecorded,
		recordTone: cfg.RecordTone,
		node:       cfg.Node,
		log:        cfg.Log,
		meter:      cfg.Meter,
		limits:     cfg.Limits.orDefaults(),
		peers:      newPeers(cfg.Node, cfg.Nodes, cfg.Sessions),
		remote:     remoteLegs{legs: make(map[legKey]remoteLeg)},
		calls:      make(map[legKey]*call),
		legs:       make(map[legKey]*leg),
		accounts:   make(map[string]*activity),
		projects:   make(map[string]int),
	}
	c.rooms = newOpenRooms(c, cfg.Rooms)
	if cfg.Nodes != nil {
		nodeServer{c}.register(cfg.Nodes)
	}
	return c
}

// Do executes a client's command. A command for a leg that the client does not hold, or no longer
// holds, has no effect. Unless the command is Hangup, Do then notifies the client that the leg has
// ended. It returns no error, because SDKs would repeat the command.
//
// For Invite, Do returns an error if the call cannot begin, such as problem.Invalid if the offer
// cannot be answered, problem.RateLimited if a limit is exceeded, or problem.Unavailable if the
// server is stopping.
func (c *Calls) Do(ctx context.Context, client Client, cmd Command) (Reply, error) {
	if cmd.Op == Invite && cmd.Attach {
		if err := c.takeOver(ctx, client, cmd.Leg); err != nil {
			return Reply{}, err
		}
		if c.isHere(client, cmd) {
			c.remote.forget(cmd.Leg, client.holder())
		}
	}
	if c.nodes != nil && c.isElsewhere(client, cmd) {
		if r, handled, err := c.forward(ctx, client, cmd); handled || err != nil {
			return r, err
		}
	}

	r, err := c.doHere(ctx, client, cmd)
	r.Node = cmp.Or(r.Node, c.node) // the room that the client dialed may be on another node
	return r, err
}

// doHere executes a command for a leg that this node carries, or begins a call.
func (c *Calls) doHere(ctx context.Context, client Client, cmd Command) (Reply, error) {
	l := c.legOf(client, cmd.Leg)
	switch {
	case cmd.Op == Invite && l == nil && !cmd.Attach:
		return c.invite(ctx, client, cmd, onAnyNode)
	case l == nil:
		c.tellGone(client, cmd)
		return Reply{}, nil
	}

	c.left.use(client, l)
	switch cmd.Op {
	case Move:
		return Reply{}, c.moveByClient(ctx, client, l, cmd.To)
	case TransferTo:
		return Reply{}, c.transferByClient(ctx, client, l, cmd.To)
	}

	return l.call.do(ctx, func() (Reply, error) {
		l.rebind(client)
		return l.execute(cmd)
	})
}

// legOf returns the leg with the given id, or nil if the client holds no such leg.
func (c *Calls) legOf(client Client, id string) *leg {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.legs[legKey{client.Token.ProjectID, id}]
	if l == nil || !isHeldBy(client.Token, l.holder) {
		return nil
	}
	return l
}

// tellGone notifies a client that the leg named in its command has ended.
func (c *Calls) tellGone(client Client, cmd Command) {
	if cmd.Op == Hangup || cmd.Leg == "" {
		return
	}
	cause := NormalClearing
	if cmd.Node != "" && cmd.Node != c.node {
		cause = NodeLost
	}
	c.tell(client.Socket, client.holder(), Event{
		Kind:    HungUp,
		Project: client.Token.ProjectID,
		Leg:     cmd.Leg,
		Node:    c.node,
		At:      time.Now(),
		Cause:   cause,
	})
}

// legsAt returns the legs whose client is connected through a socket.
func (c *Calls) legsAt(s Socket) (legs []*leg) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.legs {
		if l.at.Load().(Socket).ID == s.ID {
			legs = append(legs, l)
		}
	}
	return legs
}

// watchEvery is the interval at which Run looks for ended tokens and lost clients. A node learns of
// a revocation with a delay. The interval is so short that the revocation still takes effect
// well within a second.
const watchEvery = 250 * time.Millisecond

// Run ends legs whose token has expired or been revoked, and legs whose client does not reconnect.
// It also carries out the requests of backends and operators, and writes the ends of calls and room
// sessions that could not be written before. It returns when ctx is done.
func (c *Calls) Run(ctx context.Context) {
	var work sync.WaitGroup
	work.Go(func() { repeat(ctx, func() { endGone(c.allLegs(), c.fabric.Tokens.Heard()) }) })
	// useStore has its own goroutine, because the database may be slow.
	work.Go(func() { repeat(ctx, func() { c.useStore(ctx) }) })
	work.Wait()
}

// repeat calls f every watchEvery until ctx is done.
func repeat(ctx context.Context, f func()) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if ctx.Err() != nil { // select chooses at random if both are ready
				return
			}
			f()
		}
	}
}

// endGone ends the legs whose token has ended, or whose client is gone. heard is the current result
// of Tokens.Heard.
func endGone(legs []*leg, heard int64) {
	for _, l := range legs {
		l.call.post(func() { l.endIfGone(time.Now(), heard) })
	}
}

// useStore carries out the stored requests of backends and operators, and writes the ends of calls
// and room sessions that could not be written before.
func (c *Calls) useStore(ctx context.Context) {
	if len(c.allLegs()) > 0 {
		c.carryOutRequests(ctx)
	}
	if err := c.rooms.carryOutRequests(ctx); err != nil && ctx.Err() == nil {
		c.log.Error("finding the requests to change rooms", "error", err)
	}

	saveEnd := func(ctx context.Context, end callEnd) error { return end.save(ctx, c.store) }
	if err := c.ends.writeAll(ctx, c.log, saveEnd); err != nil && ctx.Err() == nil {
		c.log.Error("writing the ends of calls", "error", err)
	}
	if err := c.rooms.ends.writeAll(ctx, c.log, c.rooms.store.EndRoom); err != nil && ctx.Err() == nil {
		c.log.Error("writing the ends of room sessions", "error", err)
	}
}

// carryOutRequests carries out the requests of backends and operators for this node's calls.
func (c *Calls) carryOutRequests(ctx context.Context) {
	requests, err := c.store.TakeRequests(ctx, c.node)
	if err != nil && ctx.Err() == nil {
		c.log.Error("finding the requests to change calls", "error", err)
	}

	// Even after an error, carry out the requests that were found: the store may not return them
	// again.
	for _, request := range requests {
		k := c.find(request.ProjectID, request.CallID)
		if k == nil {
			continue
		}
		if request.Mute || request.Unmute {
			k.post(func() { k.muteByManager(request.Mute) })
		}
		if request.HangUp {
			k.post(func() { k.end(managerRequest) })
		}
		if request.Record && c.recorder != nil {
			go k.recordings.follow()
		}
	}
}

// find returns a running call of this node, or nil.
func (c *Calls) find(projectID, id string) *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[legKey{projectID, id}]
}

func (c *Calls) allLegs() []*leg {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.legs))
}

// Drain refuses new calls, and waits until no call is left or ctx is done.
func (c *Calls) Drain(ctx context.Context) {
	c.mu.Lock()
	c.draining = true
	c.mu.Unlock()

	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for c.Stats().Calls > 0 {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Shutdown refuses new calls and ends those that are still running, with the cause [NodeLost]. If some
// ends could not be written, it waits until Run has written them. It gives up when ctx is done, or when
// no end was written for saveTimeout. It waits for at most half of the time that is left until the
// deadline of ctx, so that recordings can still be finished.
func (c *Calls) Shutdown(ctx context.Context) {
	c.mu.Lock()
	c.draining = true
	running := slices.Collect(maps.Values(c.calls))
	c.mu.Unlock()
	c.ends.hurry()
	c.rooms.ends.hurry()

	for _, k := range running {
		_, _ = k.do(ctx, func() (Reply, error) {
			k.end(NodeLost)
			return Reply{}, nil
		})
	}
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/2)
		defer cancel()
	}
	awaitEnds(ctx, c)
}

// awaitEnds waits until no end waits to be written, ctx is done, or no end was written for saveTimeout.
func awaitEnds(ctx context.Context, c *Calls) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	written := time.Now()
	before := 0
	for {
		waiting := c.ends.count() + c.rooms.ends.count()
		if waiting < before {
			written = time.Now()
		}
		if waiting == 0 || time.Since(written) >= saveTimeout {
			return
		}
		before = waiting
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
