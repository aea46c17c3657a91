package relay

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/google/uuid"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
)

// watchEvery is the interval at which sockets are checked. It is so short that a socket is closed well
// within a second after its token was revoked. refreshers is the number of goroutines that renew
// presence. refreshing is the number of sockets that can wait for them.
const (
	watchEvery = 250 * time.Millisecond
	refreshers = 4
	refreshing = 4096
)

// How long a client may take to answer signalwire.disconnect before its socket is closed.
const (
	deadAnswers = 250 * time.Millisecond // after the client's token expired or was revoked
	stopAnswers = 2 * time.Second        // while the server stops
	stopCloses  = time.Second            // after stopAnswers, until the client closes its side
)

// Our own close codes (RFC 6455, section 7.4.2): 4000 plus the HTTP status.
const (
	tokenDead websocket.StatusCode = 4401
	tooSlow   websocket.StatusCode = 4408
)

// Run watches the sockets and renews their presence until ctx is done.
func (r *Relay) Run(ctx context.Context) {
	var work sync.WaitGroup
	defer work.Wait()
	for range refreshers {
		work.Go(func() { r.renewPresences(ctx) })
	}

	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	var all []*socket
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		all = r.all(all[:0])
		now, heard := time.Now(), r.fabric.Tokens.Heard()
		for _, s := range all {
			s.watch(now, heard)
		}
		clear(all) // closed sockets must not stay in memory
	}
}

// all appends the open sockets to a slice and returns the result.
func (r *Relay) all(to []*socket) []*socket {
	r.mu.Lock()
	defer r.mu.Unlock()
	to = slices.Grow(to, len(r.sockets))
	for s := range r.sockets {
		to = append(to, s)
	}
	return to
}

// watch closes the socket if it has reached a time limit or its token is no longer valid. Otherwise
// it pings the client and renews its presence when due. heard is the current result of
// Tokens.Heard.
func (s *socket) watch(now time.Time, heard int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	limits := s.relay.limits
	switch {
	case s.over:
	case s.leaving != nil:
		if now.After(s.leaving.by) {
			s.out.close(*s.leaving)
		}
	case s.caller == "" && now.Sub(s.opened) > limits.Authenticate:
		s.leave(farewell{code: tooSlow, reason: "no signalwire.connect in time", by: now})
	case s.caller != "" && !now.Before(s.token.ExpiresAt):
		s.leave(farewell{code: tokenDead, reason: "the token has expired", by: now.Add(deadAnswers)})
	case s.caller != "" && s.heard != heard && s.isRevoked(heard):
		s.leave(farewell{code: tokenDead, reason: "the token was revoked", by: now.Add(deadAnswers)})
	case now.Sub(s.spoke) > limits.Silence:
		s.leave(farewell{code: tooSlow, reason: "the client stopped responding", by: now})
	case s.caller != "":
		s.pingAndRenew(now)
	}
}

// isRevoked checks the token again after a revocation. If the node cannot decide because it
// receives no revocations, isRevoked returns false, and the check is repeated at the next tick.
func (s *socket) isRevoked(heard int64) bool {
	err := s.relay.fabric.Tokens.Revoked(s.token)
	if errors.Is(err, problem.Unauthenticated) {
		return true
	}
	if err == nil {
		s.heard = heard
	}
	return false
}

// pingAndRenew pings the client and schedules the renewal of its presence, each when it is due.
func (s *socket) pingAndRenew(now time.Time) {
	if !now.Before(s.pingAt) {
		s.pingAt = now.Add(s.relay.limits.Ping)
		s.out.send(request(uuid.NewString(), "signalwire.ping", beat{float64(now.UnixMilli()) / 1000}))
	}
	if s.online && !now.Before(s.onlineAt) {
		select {
		case s.relay.refresh <- s:
			s.onlineAt = now.Add(fabric.StayOnline)
		default: // the queue is full; try again at the next tick
		}
	}
}

// leave asks the client to disconnect, for the reason in f. It does not ask a client that has not
// authenticated. In either case, the socket is closed no later than f.by. s.mu must be held.
func (s *socket) leave(f farewell) {
	f.id = uuid.NewString()
	s.leaving = &f
	if s.caller != "" {
		s.out.send(request(f.id, "signalwire.disconnect", struct{}{}))
	}
}

// renewPresences renews the presence of the queued sockets until ctx is done.
func (r *Relay) renewPresences(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case s := <-r.refresh:
			s.renewPresence(ctx)
		}
	}
}

// renewPresence renews the presence of a socket that is still online.
func (s *socket) renewPresence(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s.presence.Lock()
	defer s.presence.Unlock()
	token, online := s.attendance()
	if !online {
		return // the socket went offline in the meantime
	}
	if err := s.relay.fabric.Presence.Online(ctx, token, s.id); err != nil && ctx.Err() == nil {
		s.relay.log.Warn("refreshing a socket's presence", "request_id", s.name, "error", err)
	}
}
