package sip

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/emiago/sipgo/sip"
)

// unregisterFor limits how long a stopping server waits for gateways, and then for the session store.
const unregisterFor = time.Second

// Unregister ends the registrations at gateways, which would otherwise send calls to a server that
// has stopped. The server does not register again, so another node may register in its place.
// Unregister waits at most unregisterFor for the gateways to answer.
func (s *Server) Unregister(ctx context.Context) {
	s.mu.Lock()
	s.leaving = true
	enrolled := slices.Collect(maps.Values(s.registrations))
	for _, reg := range enrolled {
		reg.expires = 0
	}
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, unregisterFor)
	defer cancel()
	var work sync.WaitGroup
	for _, reg := range enrolled {
		work.Go(func() {
			defer s.recoverPanic()
			registrar{s}.leave(ctx, reg)
		})
	}
	work.Wait()
}

// isLeaving reports whether Unregister was called.
func (s registrar) isLeaving() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leaving
}

// leave unregisters at a gateway, and then gives up the lease. It does nothing if another node holds
// the lease: some gateways keep only one registration, which is then that of the other node.
func (s registrar) leave(ctx context.Context, reg *enrollment) {
	g := reg.gateway
	if !s.isRegistrar(ctx, g) {
		return
	}
	s.unregisterAt(ctx, reg)
	if s.c.Alone {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unregisterFor)
	defer cancel()
	if err := s.c.Sessions.Delete(ctx, leaseOf(g)); err != nil {
		s.log.Warn("leaving a SIP gateway to another node", "gateway_id", g.ID, "error", err)
	}
}

// endSoon unregisters at a gateway that was deleted or changed, without waiting. The caller holds mu.
func (s registrar) endSoon(reg *enrollment) {
	reg.expires = 0
	go func() {
		defer s.recoverPanic()
		ctx, cancel := context.WithTimeout(context.Background(), unregisterFor)
		defer cancel()
		s.unregisterAt(ctx, reg)
	}()
}

// unregisterAt unregisters at a gateway, and waits until the gateway has answered or ctx is done.
func (s registrar) unregisterAt(ctx context.Context, reg *enrollment) {
	var answers []chan struct{}
	for _, f := range s.pathsOf(reg) {
		answered := make(chan struct{})
		s.sendUnregister(reg, f, nil, sync.OnceFunc(func() { close(answered) }))
		answers = append(answers, answered)
	}
	for _, answered := range answers {
		select {
		case <-answered:
		case <-ctx.Done():
		}
	}
}

// pathsOf returns the paths on which to unregister: that of the registration, and that of a REGISTER
// without an answer, which the gateway may still accept.
func (s registrar) pathsOf(reg *enrollment) (paths []flow) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Now().Before(reg.until) && !reg.path.hasEnded() {
		paths = append(paths, reg.path)
	}
	isWaiting := reg.attempt.remote.IsValid() && !reg.attempt.hasEnded()
	if isWaiting && !slices.Contains(paths, reg.attempt) {
		paths = append(paths, reg.attempt)
	}
	return paths
}

// sendUnregister sends a REGISTER that ends a registration (RFC 3261, section 10.2.2). It calls done
// once the gateway has answered, or has not answered in time.
func (s registrar) sendUnregister(reg *enrollment, f flow, authorization sip.Header, done func()) {
	g := reg.gateway
	s.request(s.newRegister(g, reg, f, authorization), f, unregisterFor, func(answer *sip.Response) {
		switch {
		case answer == nil:
			done()
			return
		case answer.StatusCode < 200:
			return
		case answer.StatusCode < 300:
			s.mu.Lock()
			reg.until = time.Time{}
			s.mu.Unlock()
			done()
			return
		}
		uri := gatewayURI(g, "")
		h, ok := answerChallenge(answer, sip.REGISTER, uri.String(), g.Username, g.Password)
		if !ok || authorization != nil {
			done()
			return
		}
		s.sendUnregister(reg, f, h, done)
	})
}
