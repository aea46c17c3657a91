package relay

import (
	"context"
	"time"

	"github.com/coder/websocket"
)

// Shutdown stops accepting sockets and asks all clients to disconnect, so that they connect to
// another node. It waits until all sockets are closed, but at most three seconds or until ctx is
// done. Then, it closes the remaining sockets.
func (r *Relay) Shutdown(ctx context.Context) {
	r.mu.Lock()
	r.stopping = true
	r.mu.Unlock()

	ctx, cancel := context.WithTimeout(ctx, stopAnswers+stopCloses)
	defer cancel()

	late := time.Now().Add(stopAnswers)
	for _, s := range r.all(nil) {
		s.disconnect(late)
	}

	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		open := r.all(nil)
		if len(open) == 0 {
			return
		}

		// Close the sockets of clients that did not answer in time.
		if time.Now().After(late) {
			for _, s := range open {
				s.out.close(stopped)
			}
		}

		select {
		case <-tick.C:
		case <-ctx.Done():
			for _, s := range open {
				go func() { _ = s.conn.CloseNow() }() // not awaited: the process is about to exit
			}
			return
		}
	}
}

// stopped is the farewell to all clients when the server stops.
var stopped = farewell{code: websocket.StatusServiceRestart, reason: "the server is stopping; connect again"}

// disconnect asks the client to disconnect by the given time, because the server stops.
func (s *socket) disconnect(by time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leaving == nil {
		f := stopped
		f.by = by
		s.leave(f)
		if s.caller == "" {
			s.out.close(f) // before authentication, nothing has to finish
		}
	}
}
