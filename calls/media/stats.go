package media

import (
	"sync/atomic"

	"github.com/selvage/selvage/calls"
)

// counters counts the engine's activity since it started.
type counters struct {
	received, receivedBytes    atomic.Uint64
	sent, sentBytes            atomic.Uint64
	dropped, limited, unsent   atomic.Uint64
	unknown, badSTUN           atomic.Uint64
	connectedUDP, connectedTCP atomic.Uint64
	handshakeFailures          atomic.Uint64
	unconnected, lost          atomic.Uint64
	refusedTCP                 atomic.Uint64
	panics                     atomic.Uint64
	consentLost                atomic.Uint64
	lateFrames                 atomic.Uint64
}

// Stats holds an engine's metrics. All except Legs and Sections only increase.
type Stats struct {
	Legs     int // open legs
	Sections int // sections of open legs

	Received, ReceivedBytes uint64 // RTP packets from clients
	Sent, SentBytes         uint64 // RTP and RTCP packets to clients
	Dropped                 uint64 // packets from clients that were malformed, replayed or above a limit
	Limited                 uint64 // dropped packets that were above a limit
	Unsent                  uint64 // packets that could not be sent: full queues, dead paths
	Unknown                 uint64 // packets from addresses that belong to no leg
	BadSTUN                 uint64 // STUN packets with a wrong password
	LateFrames              uint64 // frames that mixers skipped because the machine was too slow
	ConsentLost             uint64 // abandoned paths whose client no longer answered checks

	ConnectedUDP, ConnectedTCP uint64 // sections that connected over each protocol
	Unconnected                uint64 // closed sections whose client did not connect in time
	HandshakeFailures          uint64
	Lost                       uint64 // clients' packets that never arrived, in closed sections
	RefusedTCP                 uint64 // TCP connections that exceeded a limit or sent no proof in time
	Panics                     uint64 // panics; a panic while handling a leg's packet ends that leg
}

// Stats returns the engine's current metrics.
func (e *Engine) Stats() Stats {
	c := &e.counters
	s := Stats{
		Received:          c.received.Load(),
		ReceivedBytes:     c.receivedBytes.Load(),
		Sent:              c.sent.Load(),
		SentBytes:         c.sentBytes.Load(),
		Dropped:           c.dropped.Load(),
		Limited:           c.limited.Load(),
		Unsent:            c.unsent.Load(),
		Unknown:           c.unknown.Load(),
		BadSTUN:           c.badSTUN.Load(),
		ConnectedUDP:      c.connectedUDP.Load(),
		ConnectedTCP:      c.connectedTCP.Load(),
		HandshakeFailures: c.handshakeFailures.Load(),
		RefusedTCP:        c.refusedTCP.Load(),
		Panics:            c.panics.Load(),
		ConsentLost:       c.consentLost.Load(),
		LateFrames:        c.lateFrames.Load(),
		Unconnected:       c.unconnected.Load(),
		Lost:              c.lost.Load(),
	}

	e.mu.Lock()
	defer e.mu.Unlock()
	s.Legs = len(e.legs)
	for l := range e.legs {
		for _, section := range l.sections {
			if section.live() {
				s.Sections++
			}
		}
	}
	return s
}

// totals are the counts of several sections.
type totals struct {
	received, expected, sent uint64
}

// count adds the counts of a section.
func (t *totals) count(s *section, r *receiver) {
	t.received += r.total()
	t.expected += r.expected()
	s.out.mu.Lock()
	t.sent += s.out.sent
	s.out.mu.Unlock()
}

// measured returns the measurements of the packets that the client sent in the section. The caller
// holds the engine's mu.
func (s *section) measured() receiver {
	s.transport.in.mu.Lock()
	defer s.transport.in.mu.Unlock()
	return s.receiver
}

// Quality implements calls.Media.
func (l *leg) Quality() calls.Quality {
	l.engine.mu.Lock()
	defer l.engine.mu.Unlock()

	var q calls.Quality
	total := l.past
	for _, s := range l.sections {
		if !s.live() {
			continue
		}
		r := s.measured()
		total.count(s, &r)
		if p := s.transport.path.Load(); p != nil && q.Path.Transport == "" {
			q.Path = p.describe()
		}
		if s.kind == calls.Audio {
			q.Jitter = r.jitterDuration()
			s.out.mu.Lock()
			s.out.reports.quality(&q)
			s.out.mu.Unlock()
		}
	}

	q.Received, q.Sent = total.received, total.sent
	q.Lost = total.expected - min(total.expected, total.received)
	return q
}
