package calls

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

// A node shows that it is alive by an entry in the session store, which it renews. The store may
// lose entries, for example when a replica of Redis takes over. A node therefore counts as dead
// only after no sign of it was seen for aliveFor. The calls of a dead node have ended, because
// their media went through it.
const (
	renewEvery = 3 * time.Second
	entryFor   = 3 * renewEvery
	aliveFor   = 15 * time.Second
	reapAtOnce = 100
)

func nodeKey(node string) session.Key { return session.Key{Kind: "node", ID: node} }

// noteAlive records that another node was alive at the given time.
func (c *Calls) noteAlive(node string, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at.After(c.lastAlive[node]) {
		c.lastAlive[node] = at
	}
}

// isAlive reports whether a node has an entry, or this node knows that it was alive within
// aliveFor.
func (c *Calls) isAlive(ctx context.Context, node string) (bool, error) {
	_, err := c.sessions.Get(ctx, nodeKey(node))
	switch {
	case err == nil:
		c.noteAlive(node, time.Now())
		return true, nil
	case !errors.Is(err, problem.NotFound):
		return false, fmt.Errorf("looking for a node: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.lastAlive[node]) < aliveFor, nil
}

// deadNodes returns which of the other nodes are dead. A node that is checked for the first time
// does not count as dead.
func (c *Calls) deadNodes(ctx context.Context, nodes []string) (map[string]bool, error) {
	dead := make(map[string]bool)
	slices.Sort(nodes)
	for _, node := range slices.Compact(nodes) {
		if node == c.node || node == "" {
			continue
		}
		alive, err := c.isAlive(ctx, node)
		if err != nil {
			return nil, err
		}
		if !alive && c.isKnown(node) {
			dead[node] = true
		}
	}
	return dead, nil
}

// isKnown reports whether this node has checked the given node before, and records that it has now.
func (c *Calls) isKnown(node string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, known := c.lastAlive[node]
	if !known {
		c.lastAlive[node] = time.Now()
	}
	return known
}

// forgetAfter is how long this node remembers another node without a sign of it.
const forgetAfter = time.Hour

func (c *Calls) forgetNodes(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.lastAlive, func(_ string, at time.Time) bool { return now.Sub(at) > forgetAfter })
}

// RunNode renews this node's entry and closes the call records of nodes that died. It returns when
// ctx is done.
func (c *Calls) RunNode(ctx context.Context) {
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()
	for {
		if err := c.renew(ctx); err != nil && ctx.Err() == nil {
			c.log.Error("closing the calls of dead nodes", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (c *Calls) renew(ctx context.Context) error {
	if err := c.sessions.Put(ctx, nodeKey(c.node), []byte{}, entryFor); err != nil {
		return fmt.Errorf("renewing the node: %w", err)
	}
	running, err := c.store.RunningNodes(ctx)
	if err != nil {
		return err
	}
	dead, err := c.deadNodes(ctx, append(c.sharedNodes(), running...))
	if err != nil {
		return err
	}

	c.loseNodes(dead)
	for _, node := range running {
		if dead[node] {
			if err := errors.Join(c.endCallsOf(ctx, node), c.endLostRooms(ctx, node)); err != nil {
				return err
			}
		}
	}
	c.forgetNodes(time.Now())
	return nil
}

// endCallsOf closes the records of a dead node's calls.
func (c *Calls) endCallsOf(ctx context.Context, node string) error {
	for {
		left, err := c.store.RunningCalls(ctx, node, reapAtOnce)
		if err != nil || len(left) == 0 {
			return err
		}
		for _, r := range left {
			r.State, r.Cause, r.Ended = Completed, NodeLost, time.Now().UTC()
			switch err := c.store.SaveCall(ctx, r); {
			case err == nil:
				c.meter.Ended(r)
			case !errors.Is(err, ErrTaken):
				return err
			}
		}
	}
}

// endLostRooms closes the records of a dead node's room sessions.
func (c *Calls) endLostRooms(ctx context.Context, node string) error {
	left, err := c.roomStore.RunningRooms(ctx, node)
	if err != nil {
		return err
	}
	for _, s := range left {
		if err := c.endLostRoom(ctx, s); err != nil {
			return err
		}
	}
	return nil
}
