package sip

import (
	"context"
	"time"
)

// CheckDialogs asks phones in calls whether they are still there, and uses now as the present time.
func (s *Server) CheckDialogs(now time.Time) { s.checkDialogs(now) }

// ReadGateways reads all gateways, and begins the registrations that are due.
func (s *Server) ReadGateways(ctx context.Context) error { return s.readGateways(ctx) }
