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

// The rhythm of the watch, with that of the revocations, keeps a revocation well
// within a second. refreshers say who is still online, refreshing may wait for it.
const (
	watchEvery = 250 * time.Millisecond
	refreshers = 4
	refreshing = 4096
)

// How long a client may take to answer signalwire.disconnect before its socket is
// closed.
const (
	deadAnswers = 250 * time.Millisecond // its token is dead
	stopAnswers = 2 * time.Second        // the server stops
	stopCloses  = time.Second            // and then to close its end
)

// The codes of our own with which sockets are closed (RFC 6455, section 7.4.2):
// the HTTP status and 4000.
const (
	tokenDead websocket.StatusCode = 4401
	tooSlow   websocket.StatusCode = 4408
)

// Run watches the sockets until ctx ends.
func (r *Relay) Run(ctx context.Context) {
	var work sync.WaitGroup
	defer work.Wait()
	for range refreshers {
		work.Go(func() { r.stayOnline(ctx) })
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
		clear(all) // they are not to be kept alive
	}
}

// all appends the open sockets.
func (r *Relay) all(to []*socket) []*socket {
	r.mu.Lock()
	defer r.mu.Unlock()
	to = slices.Grow(to, len(r.sockets))
	for s := range r.sockets {
		to = append(to, s)
	}
	return to
}

// watch does what is due: it closes a socket whose time is over, and asks the
// client of another whether it is there. heard is what this node has heard of
// revocations by now.
func (s *socket) watch(now time.Time, heard int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	limits := s.relay.limits
	switch {
	case s.over:
	case s.leaving != nil:
		if now.After(s.leaving.by) {
			s.out.close(s.conn, *s.leaving)
		}
	case s.caller == "" && now.Sub(s.opened) > limits.Authenticate:
		s.leave(farewell{code: tooSlow, reason: "no signalwire.connect in time", by: now})
	case s.caller != "" && !now.Before(s.token.ExpiresAt):
		s.leave(farewell{code: tokenDead, reason: "the token has expired", by: now.Add(deadAnswers)})
	case s.caller != "" && s.heard != heard && s.isRevoked(heard):
		s.leave(farewell{code: tokenDead, reason: "the token was revoked", by: now.Add(deadAnswers)})
	case now.Sub(s.spoke) > limits.Silence:
		s.leave(farewell{code: tooSlow, reason: "the client fell silent", by: now})
	case s.caller != "":
		s.keep(now)
	}
}

// isRevoked checks the token after something was revoked. A node that hears
// nothing does not know, and asks again.
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

// keep asks the client for a sign of life, and says that it is still online.
func (s *socket) keep(now time.Time) {
	if !now.Before(s.pingAt) {
		s.pingAt = now.Add(s.relay.limits.Ping)
		s.out.send(s.conn, request(uuid.NewString(), "signalwire.ping", beat{float64(now.UnixMilli()) / 1000}))
	}
	if s.online && !now.Before(s.onlineAt) {
		select {
		case s.relay.refresh <- s:
			s.onlineAt = now.Add(fabric.StayOnline)
		default: // at the next tick
		}
	}
}

// leave tells the client to go, and why; s.mu is held. A client that is to do
// without closes at once.
func (s *socket) leave(f farewell) {
	f.id = uuid.NewString()
	s.leaving = &f
	if s.caller != "" {
		s.out.send(s.conn, request(f.id, "signalwire.disconnect", struct{}{}))
	}
}

// stayOnline says for sockets that they are still online.
func (r *Relay) stayOnline(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case s := <-r.refresh:
			s.stay(ctx)
		}
	}
}

func (s *socket) stay(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s.presence.Lock()
	defer s.presence.Unlock()
	token, online := s.attendance()
	if !online {
		return // it has just gone offline
	}
	if err := s.relay.fabric.Presence.Online(ctx, token, s.id); err != nil && ctx.Err() == nil {
		s.relay.log.Warn("saying that a socket is still online", "request_id", s.name, "error", err)
	}
}
