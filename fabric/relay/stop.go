package relay

import (
	"context"
	"time"

	"github.com/coder/websocket"
)

// Shutdown opens no more sockets, tells the clients of all that are open to go,
// so that they connect elsewhere, and waits until they have: for three seconds at
// most, or until ctx ends. Those that are open then are cut off.
func (r *Relay) Shutdown(ctx context.Context) {
	r.mu.Lock()
	r.stopping = true
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, stopAnswers+stopCloses)
	defer cancel()
	late := time.Now().Add(stopAnswers)
	for _, s := range r.all(nil) {
		s.goAway(late)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		open := r.all(nil)
		if len(open) == 0 {
			return
		}
		if time.Now().After(late) {
			for _, s := range open {
				s.out.close(s.conn, stopped)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			for _, s := range open {
				go func() { _ = s.conn.CloseNow() }() // the process ends
			}
			return
		}
	}
}

// stopped is why sockets are closed when the server stops.
var stopped = farewell{code: websocket.StatusServiceRestart, reason: "the server stops; connect again"}

// goAway tells the client that the server stops.
func (s *socket) goAway(by time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leaving == nil {
		f := stopped
		f.by = by
		s.leave(f)
		if s.caller == "" {
			s.out.close(s.conn, f) // who is no one yet needs no time
		}
	}
}
