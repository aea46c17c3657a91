package calls

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

// A node shows that it is alive by an entry of the session store, which it renews. The calls
// of a node whose entry has run out are over: their media went through it.
const (
	aliveFor   = 15 * time.Second
	renewEvery = 5 * time.Second
	reapAtOnce = 100
)

func nodeKey(node string) session.Key { return session.Key{Kind: "node", ID: node} }

// RunNode keeps this node alive for the others, and ends the records of nodes that died,
// until ctx ends.
func (c *Calls) RunNode(ctx context.Context) {
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()
	for {
		if err := c.renew(ctx); err != nil && ctx.Err() == nil {
			c.log.Error("looking after the calls of dead nodes", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (c *Calls) renew(ctx context.Context) error {
	if err := c.sessions.Put(ctx, nodeKey(c.node), []byte{}, aliveFor); err != nil {
		return fmt.Errorf("renewing the node: %w", err)
	}
	c.checkNodes(ctx)
	nodes, err := c.store.RunningNodes(ctx)
	if err != nil {
		return err
	}
	for _, node := range nodes {
		if node == c.node {
			continue
		}
		_, err := c.sessions.Get(ctx, nodeKey(node))
		if errors.Is(err, problem.NotFound) {
			err = c.bury(ctx, node)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bury ends the records of a dead node's calls.
func (c *Calls) bury(ctx context.Context, node string) error {
	for {
		left, err := c.store.RunningCalls(ctx, node, reapAtOnce)
		if err != nil || len(left) == 0 {
			return err
		}
		for _, r := range left {
			r.State, r.Cause, r.Ended = Completed, NodeLost, time.Now().UTC()
			if err := c.store.SaveCall(ctx, r); err != nil {
				return err
			}
		}
	}
}
