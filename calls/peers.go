package calls

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

// A node shows that it is alive by renewing an entry in the session store. The store may lose
// entries, for example when a replica of Redis takes over. A node therefore counts as dead only if
// another node has seen neither its entry nor an event from it for aliveFor. The calls of a dead
// node have ended, because their media went through that node.
const (
	renewEvery = 3 * time.Second
	entryFor   = 3 * renewEvery
	aliveFor   = 15 * time.Second
)

// pingMessage asks a node whether it is running. The answer is empty.
const pingMessage = "call.ping"

// These constants determine how soon a silent node counts as lost.
const (
	pingFor = 700 * time.Millisecond
	pings   = 2
	lostFor = 5 * time.Second // how long a lost node is not pinged
)

// peers tracks which of the other nodes are alive. It is safe for concurrent use.
type peers struct {
	self     string // the name of this node
	nodes    Nodes  // nil if this is the only node
	sessions session.Store

	mu        sync.Mutex
	checked   time.Time            // when deadNodes last succeeded
	lastAlive map[string]time.Time // when each other node was last heard from
	lost      map[string]time.Time // when each other node last failed to answer
	gone      map[string]time.Time // like lost, but for calls that would ring the node's phones
}

func newPeers(self string, nodes Nodes, sessions session.Store) *peers {
	return &peers{
		self:      self,
		nodes:     nodes,
		sessions:  sessions,
		lastAlive: make(map[string]time.Time),
		lost:      make(map[string]time.Time),
		gone:      make(map[string]time.Time),
	}
}

func nodeKey(node string) session.Key { return session.Key{Kind: "node", ID: node} }

// noteAlive records that another node was alive at the given time.
func (p *peers) noteAlive(node string, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at.After(p.lastAlive[node]) {
		p.lastAlive[node] = at
	}
}

// isAlive reports whether a node has an entry, or was heard from within aliveFor.
func (p *peers) isAlive(ctx context.Context, node string) (bool, error) {
	_, err := p.sessions.Get(ctx, nodeKey(node))
	switch {
	case err == nil:
		p.noteAlive(node, time.Now())
		return true, nil
	case !errors.Is(err, problem.NotFound):
		return false, fmt.Errorf("looking for a node: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Since(p.lastAlive[node]) < aliveFor, nil
}

// deadNodes returns which of the other nodes are dead. A node that is checked for the first time
// does not count as dead.
func (p *peers) deadNodes(ctx context.Context, nodes []string) (map[string]bool, error) {
	p.forgive(time.Now())
	dead := make(map[string]bool)
	slices.Sort(nodes)
	for _, node := range slices.Compact(nodes) {
		if node == p.self || node == "" {
			continue
		}
		alive, err := p.isAlive(ctx, node)
		if err != nil {
			return nil, err
		}
		if !alive && p.isKnown(node) {
			dead[node] = true
		}
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	p.checked = time.Now()
	return dead, nil
}

// forgive restarts the time aliveFor of all nodes if deadNodes has not succeeded for the lifetime of an
// entry. In this case, the session store was probably unavailable to the other nodes, too, so they
// could not renew their entries.
func (p *peers) forgive(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Sub(p.checked) <= entryFor {
		return
	}
	for node := range p.lastAlive {
		p.lastAlive[node] = now
	}
}

// isKnown reports whether this node has checked the given node before, and records that it has now.
func (p *peers) isKnown(node string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, known := p.lastAlive[node]
	if !known {
		p.lastAlive[node] = time.Now()
	}
	return known
}

// known returns the other nodes that this node remembers.
func (p *peers) known() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.lastAlive))
}

// forgetAfter is how long this node remembers another node that is silent.
const forgetAfter = time.Hour

// forgetSilent forgets the nodes that have been silent for forgetAfter.
func (p *peers) forgetSilent(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.lastAlive, func(_ string, at time.Time) bool { return now.Sub(at) > forgetAfter })
}

// isLost reports whether a node does not answer although the bus delivers messages.
func (p *peers) isLost(ctx context.Context, node string) bool {
	if p.nodes == nil {
		return true // this is the only node, so the call belongs to an earlier process
	}
	return p.isSilent(ctx, node, p.lost)
}

// isSilent is like isLost, if there are other nodes. silent contains when nodes last failed to answer.
func (p *peers) isSilent(ctx context.Context, node string, silent map[string]time.Time) bool {
	p.mu.Lock()
	since := time.Since(silent[node])
	p.mu.Unlock()
	if since < lostFor {
		return true
	}

	for range pings {
		if p.ping(ctx, node) {
			return false
		}
	}

	if !p.ping(ctx, p.self) {
		return false // messages are being lost, so the node may be alive
	}
	p.mu.Lock()
	defer p.mu.Unlock()

	for name, at := range silent {
		if time.Since(at) > lostFor {
			delete(silent, name)
		}
	}
	silent[node] = time.Now()
	return true
}

// isGone reports whether a node shows no sign of life and does not answer. A running node may have no
// entry for a while after an outage of the session store. Takeovers do not use isGone, because the node
// may start again within lostFor.
func (p *peers) isGone(ctx context.Context, node string) (bool, error) {
	alive, err := p.isAlive(ctx, node)
	if err != nil || alive {
		return false, err
	}
	return p.isSilent(ctx, node, p.gone), nil
}

// goneNodes returns which of the given nodes are gone. It asks all nodes at the same time.
func (p *peers) goneNodes(ctx context.Context, nodes []string) (map[string]bool, error) {
	gone := make(map[string]bool)
	var asking sync.WaitGroup
	var mu sync.Mutex // guards gone and failed
	var failed error

	slices.Sort(nodes)
	for _, node := range slices.Compact(nodes) {
		if node == p.self || node == "" {
			continue
		}
		asking.Go(func() {
			isGone, err := p.isGone(ctx, node)
			mu.Lock()
			defer mu.Unlock()
			gone[node] = isGone
			failed = errors.Join(failed, err)
		})
	}
	asking.Wait()
	return gone, failed
}

func (p *peers) ping(ctx context.Context, node string) bool {
	ctx, cancel := context.WithTimeout(ctx, pingFor)
	defer cancel()
	return p.nodes.Ask(ctx, node, pingMessage, struct{}{}, &struct{}{}) == nil
}
