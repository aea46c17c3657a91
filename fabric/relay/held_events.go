package relay

import (
	"sync"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
)

// maxHeld and maxHeldBytes limit the events that are held back. If a request causes more events, for
// example in a large room, the first ones are sent before the response. Otherwise, the response and all events
// together might not fit into the queue of the socket. The queue can still become full if the client
// reads too slowly.
const (
	maxHeld      = maxWaiting / 2
	maxHeldBytes = maxWaitingBytes / 2
)

// A held delays events while a request from the same socket is being answered. A client learns of
// its new call from the response, so it could not assign earlier events to the call.
type held struct {
	mu      sync.Mutex
	on      bool
	waiting [][]byte
	bytes   int // in waiting
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
	s.events.waiting = append(s.events.waiting, text)
	s.events.bytes += len(text)
	if !s.events.on || len(s.events.waiting) == maxHeld || s.events.bytes >= maxHeldBytes {
		s.sendHeld()
	}
}

// sendHeld sends the waiting events in order. s.events.mu must be held.
func (s *socket) sendHeld() {
	for _, text := range s.events.waiting {
		s.out.send(text)
	}
	s.events.waiting, s.events.bytes = nil, 0
}

// releaseEvents sends the events that were held back.
func (s *socket) releaseEvents() {
	s.events.mu.Lock()
	defer s.events.mu.Unlock()
	s.sendHeld()
	s.events.on = false
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
