package media

import (
	"net"
	"os"
	"sync"
	"time"
)

// queueLength is how many DTLS packets may be queued. A flight from a browser has at most four.
const queueLength = 16

// A pipe is the net.PacketConn of a DTLS association. It reads packets that workers pushed, and
// writes to the path of its transport.
type pipe struct {
	transport *transport
	queue     chan []byte
	closed    chan struct{}
	once      sync.Once

	mu      sync.Mutex
	rate    bucket
	expired chan struct{} // closed once the read deadline has passed
	past    bool          // the read deadline has passed
}

func newPipe(t *transport) *pipe {
	return &pipe{
		transport: t,
		queue:     make(chan []byte, queueLength),
		closed:    make(chan struct{}),
		expired:   make(chan struct{}),
		rate:      bucket{rate: 100, burst: 100},
	}
}

// push queues a copy of a packet. It returns false if the queue is full or the client sends too
// many packets.
func (p *pipe) push(b []byte, now time.Time) bool {
	p.mu.Lock()
	ok := p.rate.take(1, now)
	p.mu.Unlock()
	if !ok {
		return false
	}
	select {
	case p.queue <- append([]byte(nil), b...):
		return true
	default:
		return false
	}
}

func (p *pipe) empty() bool { return len(p.queue) == 0 }

// ReadFrom implements net.PacketConn.
func (p *pipe) ReadFrom(b []byte) (int, net.Addr, error) {
	p.mu.Lock()
	expired := p.expired
	p.mu.Unlock()
	select {
	case packet := <-p.queue:
		return copy(b, packet), &net.UDPAddr{}, nil
	case <-expired:
		return 0, nil, os.ErrDeadlineExceeded
	case <-p.closed:
		return 0, nil, net.ErrClosed
	}
}

// WriteTo implements net.PacketConn.
func (p *pipe) WriteTo(b []byte, _ net.Addr) (int, error) {
	p.transport.send(b) // pion repeats lost packets
	return len(b), nil
}

// Close implements net.PacketConn.
func (p *pipe) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// SetReadDeadline implements net.PacketConn as far as pion/dtls uses it: a deadline in the past
// makes reads fail, and a zero deadline allows them again.
func (p *pipe) SetReadDeadline(t time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	past := !t.IsZero() && !t.After(time.Now())
	if past == p.past {
		return nil
	}
	p.past = past
	if past {
		close(p.expired)
	} else {
		p.expired = make(chan struct{})
	}
	return nil
}

// reset makes the pipe ready for another association after an association has been closed.
func (p *pipe) reset() {
	for !p.empty() {
		<-p.queue
	}
	p.once, p.closed = sync.Once{}, make(chan struct{})
}

// LocalAddr implements net.PacketConn.
func (p *pipe) LocalAddr() net.Addr { return &net.UDPAddr{} }

// SetDeadline implements net.PacketConn.
func (p *pipe) SetDeadline(t time.Time) error { return p.SetReadDeadline(t) }

// SetWriteDeadline implements net.PacketConn. Writing never waits.
func (p *pipe) SetWriteDeadline(time.Time) error { return nil }
