package sip

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// CheckDialogs asks phones in calls whether they are still reachable, and uses now as the present
// time.
func (s *Server) CheckDialogs(now time.Time) { allDialogs{s}.check(now) }

// ReadGateways reads all gateways, and begins the registrations that are due.
func (s *Server) ReadGateways(ctx context.Context) error { return registrar{s}.readGateways(ctx) }

// TimeOutACKs makes the server stop waiting for the ACKs to all responses, as it does after 32
// seconds.
func (s *Server) TimeOutACKs() {
	s.mu.Lock()
	transactions := slices.Collect(maps.Values(s.served))
	s.mu.Unlock()
	for _, t := range transactions {
		t.mu.Lock()
		t.since = t.since.Add(-timerEnd)
		t.mu.Unlock()
		t.tick()
	}
}

// TimeOutRequests makes the server stop waiting for the responses to all requests that it has sent, as
// it does after a while.
func (s *Server) TimeOutRequests() {
	s.mu.Lock()
	transactions := slices.Collect(maps.Values(s.sent))
	s.mu.Unlock()
	for _, t := range transactions {
		t.stop()
		t.mu.Lock()
		t.since = t.since.Add(-timerEnd)
		t.mu.Unlock()
		t.tick()
	}
}

// Ping pings the phones and gateways with a registration over UDP.
func (s *Server) Ping() { pinger{s}.ping(time.Now()) }

// SavePings saves the addresses to ping.
func (s *Server) SavePings(ctx context.Context) error { return pinger{s}.save(ctx) }

// SlowRequests makes the server act as if slowAfter had passed since it sent its requests. It waits until
// the server has tried to send each unanswered request to another address.
func (s *Server) SlowRequests() {
	var tried sync.WaitGroup
	s.mu.Lock()
	transactions := slices.Collect(maps.Values(s.sent))
	s.mu.Unlock()
	for _, t := range transactions {
		t.stop()
		t.mu.Lock()
		t.since = t.since.Add(-slowAfter)
		if slow := t.slow; slow != nil && !t.provisional && !t.final {
			tried.Add(1)
			t.slow = func() bool {
				defer tried.Done()
				return slow()
			}
		}
		t.mu.Unlock()
		t.tick()
	}
	tried.Wait()
}

// Unanswered returns the number of requests that wait for a final response.
func (s *Server) Unanswered() (n int) {
	s.mu.Lock()
	transactions := slices.Collect(maps.Values(s.sent))
	s.mu.Unlock()
	for _, t := range transactions {
		t.mu.Lock()
		if !t.final {
			n++
		}
		t.mu.Unlock()
	}
	return n
}

// RenewRegistrations makes the registrations at all gateways due.
func (s *Server) RenewRegistrations() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.registrations {
		r.next = time.Time{}
	}
}

// NextRegistration returns when the server next registers at the only gateway.
func (s *Server) NextRegistration() (next time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.registrations {
		next = r.next
	}
	return next
}

// PendingRegistrations returns the number of registrations that wait for a gateway.
func (s *Server) PendingRegistrations() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.registrations {
		if r.pending {
			n++
		}
	}
	return n
}

// Transactions returns the number of requests that the server remembers.
func (s *Server) Transactions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.served)
}

// FillTransactions makes the server remember as many requests as it can.
func (s *Server) FillTransactions() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := 0; len(s.served) < maxTransactions; i++ {
		key := serverKey{branch: strconv.Itoa(i)}
		s.served[key] = &serverTx{server: s, key: key, timer: time.NewTimer(time.Hour)}
	}
}

// FillGuests makes the server keep as many unauthenticated connections from an address as it can.
func (s *Server) FillGuests(from netip.Addr) {
	for s.guests.Add(from) {
	}
}

// LimitMessages makes the server accept at most the given number of messages from an address that
// is not proven, however slowly they arrive.
func (s *Server) LimitMessages(from netip.Addr, limit int) {
	s.rates.mu.Lock()
	defer s.rates.mu.Unlock()
	s.rates.stranger(networkOf(from)).messages = rate.NewLimiter(0, limit)
}

// LimitCalls makes the server accept at most the given number of calls to a SIP address, however
// slowly they arrive.
func (s *Server) LimitCalls(sipAddressID string, limit int) {
	s.accounts.mu.Lock()
	defer s.accounts.mu.Unlock()
	s.accounts.all = map[string]*rate.Limiter{sipAddressID: rate.NewLimiter(0, limit)}
}

// LimitRequestsInCalls makes the server accept only the burst of requests in each current call, however
// slowly they arrive.
func (s *Server) LimitRequestsInCalls() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.dialogs {
		d.requests.SetLimit(0)
	}
}

// SweepDamages makes the server forget errors about passwords that it logged long ago. It uses now
// as the present time.
func (s *Server) SweepDamages(now time.Time) { s.damages.sweep(now) }

// DenyOnce counts wrong credentials for a username from an address. It reports whether the server
// then blocks the username in the network of that address, and whether it blocks the whole network.
func (s *Server) DenyOnce(ctx context.Context, username string, from netip.Addr) (user, network bool) {
	now, key := time.Now(), blockKey{networkOf(from), username}
	_ = s.deny(ctx, key, now)
	return s.blocked.has(key, now), s.blocked.has(blockKey{network: key.network}, now)
}
