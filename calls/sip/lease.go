package sip

import (
	"context"
	"errors"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

// isRegistrar reports whether this node registers at a gateway. With several nodes, only the node
// that holds the lease registers. isRegistrar renews the lease of this node, or takes the lease if
// no node holds it.
func (s registrar) isRegistrar(ctx context.Context, g fabric.Gateway) bool {
	if s.c.Alone {
		return true
	}
	key, node := leaseOf(g), []byte(s.c.Node)
	err := s.c.Sessions.Add(ctx, key, node, registrarFor)
	if errors.Is(err, problem.Conflict) {
		err = s.c.Sessions.CompareAndSwap(ctx, key, node, node, registrarFor)
	}
	if err != nil && !errors.Is(err, problem.Conflict) && !errors.Is(err, problem.NotFound) && ctx.Err() == nil {
		s.log.Error("registering at a SIP gateway", "gateway_id", g.ID, "error", err)
	}
	return err == nil
}

// leaseOf returns the key of the lease of the node that registers at a gateway.
func leaseOf(g fabric.Gateway) session.Key { return session.Key{Kind: "registrar", ID: g.ID} }
