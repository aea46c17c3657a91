package sip

import (
	"sync"
	"time"

	"github.com/emiago/sipgo/sip"
)

// A sentKey identifies the transaction of a response (RFC 3261, section 17.1.3). An INVITE and its
// CANCEL have the same branch.
type sentKey struct {
	branch string
	method sip.RequestMethod
}

func sentKeyOf(r *sip.Request) sentKey {
	branch, _ := r.Via().Params.Get("branch")
	return sentKey{branch, r.Method}
}

// A clientTx is the transaction of a sent request. Over UDP, it repeats an INVITE until a response
// arrives, and any other request until a final response arrives (RFC 3261, section 17.1.2.2).
type clientTx struct {
	server  *Server
	request *sip.Request
	bytes   []byte
	flow    flow
	handle  func(*sip.Response) // called with nil if no response arrives in time
	slow    func() bool         // see trySlow; nil for most requests

	mu          sync.Mutex
	timer       *time.Timer
	pause       time.Duration
	since       time.Time     // when the request was first sent
	limit       time.Duration // see request
	provisional bool
	final       bool
	left        bool // the INVITE was sent to another address, too
}

// request sends a request. It calls handle with each response, or with nil if no response arrives
// within limit.
func (s *Server) request(r *sip.Request, f flow, limit time.Duration, handle func(*sip.Response)) *clientTx {
	t := &clientTx{server: s, request: r, flow: f, limit: limit, handle: handle}
	t.begin()
	return t
}

// begin sends the request.
func (t *clientTx) begin() {
	t.bytes = []byte(t.request.String())
	t.pause = timerT1
	t.since = time.Now()
	s := t.server
	t.mu.Lock() // until the timer exists, because Close stops it
	defer t.mu.Unlock()
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.sent[sentKeyOf(t.request)] = t
	s.mu.Unlock()

	t.flow.write(t.bytes)
	t.timer = s.after(t.pause, t.tick)
}

// tick repeats the request or ends the transaction.
func (t *clientTx) tick() {
	t.mu.Lock()
	if t.final {
		t.mu.Unlock()
		t.end()
		return
	}
	elapsed := time.Since(t.since)
	if elapsed >= t.timeout() {
		t.mu.Unlock()
		t.end()
		t.handle(nil)
		return
	}
	defer t.mu.Unlock()

	isHeard := t.provisional && t.request.IsInvite()
	isSlow := t.slow != nil && !isHeard && elapsed >= slowAfter
	switch {
	case isSlow:
		go t.trySlow(t.slow)
		t.slow = nil
	case t.flow.udp != nil && !isHeard && !t.left:
		t.flow.write(t.bytes)
	}
	t.pause *= 2
	if !t.request.IsInvite() {
		t.pause = min(t.pause, timerT2)
	}
	left := t.timeout() - elapsed
	if t.slow != nil && elapsed < slowAfter {
		left = slowAfter - elapsed
	}
	t.pause = max(min(t.pause, left), time.Millisecond) // a pause of 0 could not grow
	t.timer = t.server.after(t.pause, t.tick)
}

// trySlow calls slow, because no response has arrived within slowAfter. If slow returns true, the request
// is no longer repeated, because it was sent to another address. Late responses are still handled.
func (t *clientTx) trySlow(slow func() bool) {
	defer t.server.recoverPanic()
	if slow() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.left = true
	}
}

// timeout returns how long the transaction waits for a final response. While a phone rings, it waits longer
// than limit.
func (t *clientTx) timeout() time.Duration {
	if t.provisional && t.request.IsInvite() {
		return calledFor
	}
	return t.limit
}

// receive handles a response. It acknowledges a response that refuses an INVITE (RFC 3261, section
// 17.1.1.3).
func (t *clientTx) receive(r *sip.Response) {
	t.mu.Lock()
	first := !t.final
	if r.StatusCode < 200 {
		t.provisional = true
	} else if first {
		t.final = true
		t.timer.Stop()
		t.timer = t.server.after(timerEnd, t.tick)
	}
	if t.request.IsInvite() && r.StatusCode >= 300 {
		t.flow.write([]byte(acknowledgment(t.request, r).String()))
	}

	t.mu.Unlock()
	if first || r.StatusCode < 300 {
		t.handle(r)
	}
}

func (t *clientTx) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer.Stop()
}

func (t *clientTx) end() {
	t.server.mu.Lock()
	defer t.server.mu.Unlock()
	delete(t.server.sent, sentKeyOf(t.request))
}
