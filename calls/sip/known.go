package sip

import (
	"net/netip"
	"slices"
	"strings"
	"time"
)

// registeredAt returns the ids of those gateways at an address where the server has a registration.
// ours reports whether a user is in the Contact header of one of these registrations.
func (s *Server) registeredAt(from netip.Addr, user string) (ids map[string]bool, ours bool) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, r := range s.registrations {
		if r.path.source() != from || !now.Before(r.until) {
			continue
		}
		if ids == nil {
			ids = make(map[string]bool)
		}
		ids[id] = true
		ours = ours || strings.EqualFold(r.user, user)
	}
	return ids, ours
}

// isGateway reports whether any gateway in the latest list accepts calls from an address.
func (s *Server) isGateway(from netip.Addr) bool {
	s.mu.Lock()
	networks := s.networks
	s.mu.Unlock()
	return slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(from) })
}
