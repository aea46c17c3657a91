package relay

import (
	"sync"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
)

// A held delays events while a request from the same socket is being answered. A client learns of
// its new call from the response, so it could not assign earlier events to the call.
type held struct {
	mu      sync.Mutex
	on      bool
	waiting [][]byte
}

func (h *held) hold() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.on = true
}

// tell sends an event, or holds it back until the request is answered.
func (s *socket) tell(text []byte) {
	s.events.mu.Lock()
	defer s.events.mu.Unlock()
	if s.events.on && len(s.events.waiting) < maxWaiting {
		s.events.waiting = append(s.events.waiting, text)
		return
	}
	s.out.send(s.conn, text)
}

// releaseEvents sends the events that were held back.
func (s *socket) releaseEvents() {
	s.events.mu.Lock()
	defer s.events.mu.Unlock()
	for _, text := range s.events.waiting {
		s.out.send(s.conn, text)
	}
	s.events.on, s.events.waiting = false, nil
}

// forget drops later events for a closed socket, and notifies package calls that the socket was
// closed.
func (r *Relay) forget(s *socket, id string, token fabric.Token) {
	r.mu.Lock()
	r.readers.remove(s, token)
	if r.named[id] == s {
		delete(r.named, id)
	}
	r.mu.Unlock()
	if r.calls != nil {
		r.calls.Closed(calls.Socket{Node: r.node, ID: id})
	}
}
