package calls

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// reapAtOnce is how many calls of a dead node are read at a time.
const reapAtOnce = 100

// reapFor limits how long a renewal may take to close the calls of dead nodes, and to notify clients.
// The next renewal continues. A longer renewal would look like an outage of the session store; see
// [peers.forgive].
const reapFor = renewEvery

// RunNode renews this node's entry, and writes the ends of the calls and room sessions of nodes
// that died. It returns when ctx is done.
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
	dead, err := c.peers.deadNodes(ctx, append(c.sharedNodes(), running...))
	if err != nil {
		return err
	}

	err = c.loseNodes(ctx, dead)
	reaping, cancel := context.WithTimeout(ctx, reapFor)
	defer cancel()
	for _, node := range running {
		if dead[node] {
			err = errors.Join(err, c.endCallsOf(reaping, node), c.rooms.endLostOf(reaping, node))
		}
	}
	err = errors.Join(err, orphans{c}.endAll(reaping))
	c.peers.forgetSilent(time.Now())
	return err
}

// endCallsOf writes the ends of a dead node's calls.
func (c *Calls) endCallsOf(ctx context.Context, node string) error {
	for {
		left, err := c.store.RunningCalls(ctx, node, reapAtOnce)
		if err != nil || len(left) == 0 {
			return err
		}
		for _, r := range left {
			err := orphans{c}.end(ctx, r)
			if err != nil {
				return err
			}
		}
	}
}
