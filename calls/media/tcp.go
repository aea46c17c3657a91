package media

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

const (
	proofTimeout  = 5 * time.Second  // time for a new connection to prove which transport it belongs to
	idleTimeout   = 30 * time.Second // maximum time between two STUN checks on a connection
	writeTimeout  = 5 * time.Second
	maxStreams    = 4   // connections per transport; a new connection closes the oldest
	maxUnproven   = 256 // connections that belong to no transport yet
	maxPerNetwork = 32  // unproven connections per network
	streamQueue   = 128 // packets queued for a slow connection
)

// A stream is a TCP connection from a client (RFC 6544). Two bytes with the length precede each
// packet (RFC 4571).
type stream struct {
	conn  *net.TCPConn
	queue chan frame
	done  chan struct{}
	once  sync.Once
}

// A frame is a packet preceded by its length.
type frame struct {
	buffer *[maxPacket + 2]byte
	size   int
}

// frames is a pool of unused buffers.
var frames = sync.Pool{New: func() any { return new([maxPacket + 2]byte) }}

// acceptTCP accepts connections until the listener is closed.
func (e *Engine) acceptTCP(l *net.TCPListener) {
	for {
		conn, err := l.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // for example out of file descriptors; other connections may end
			select {
			case <-e.done:
				return
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}

		if !e.unproven.Add(addressOf(conn.RemoteAddr()).Addr()) {
			e.counters.refusedTCP.Add(1)
			_ = conn.Close()
			continue
		}
		s := &stream{conn: conn, queue: make(chan frame, streamQueue), done: make(chan struct{})}
		e.group.Go(func() { e.serveTCP(s) })
	}
}

// serveTCP reads from a connection until it ends.
func (e *Engine) serveTCP(s *stream) {
	w := e.newWorker()
	w.from = path{tcp: s, remote: addressOf(s.conn.RemoteAddr()), local: addressOf(s.conn.LocalAddr())}
	proven := false
	defer func() {
		s.close()
		if !proven {
			e.unproven.Remove(w.from.remote.Addr())
			e.counters.refusedTCP.Add(1)
		}
	}()
	stop := e.trackStream(s)
	defer stop()
	in := bufio.NewReaderSize(s.conn, maxPacket+2)
	_ = s.conn.SetReadDeadline(time.Now().Add(time.Duration(e.proof.Load())))

	b, err := w.readFrame(in)
	if err != nil || !isSTUN(b) {
		return
	}
	e.group.Go(s.sendQueued) // sends the answer while the check is being handled
	t := w.receiveSTUN(b, &w.from, time.Now())
	if t == nil || !t.addStream(s) {
		return
	}
	defer t.removeStream(s)
	proven = true
	e.unproven.Remove(w.from.remote.Addr())
	w.serveStream(t, s, in)
}

// serveStream handles the packets of a connection whose client has been verified.
func (w *worker) serveStream(t *transport, s *stream, in *bufio.Reader) {
	_ = s.conn.SetReadDeadline(time.Now().Add(idleTimeout))
	for {
		b, err := w.readFrame(in)
		if err != nil {
			return
		}
		now := time.Now()
		if !isSTUN(b) {
			w.dispatch(t, b, now)
			continue
		}
		if isIndication(b) {
			continue
		}
		if w.receiveSTUN(b, &w.from, now) != t {
			return
		}
		_ = s.conn.SetReadDeadline(now.Add(idleTimeout))
	}
}

// readFrame reads a packet.
func (w *worker) readFrame(in *bufio.Reader) ([]byte, error) {
	var length [2]byte
	if _, err := io.ReadFull(in, length[:]); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint16(length[:]))
	if n > len(w.raw) {
		return nil, errors.New("a packet is too long")
	}
	if _, err := io.ReadFull(in, w.raw[:n]); err != nil {
		return nil, err
	}
	return w.raw[:n], nil
}

// trackStream closes a connection when the engine closes, unless stop has been called.
func (e *Engine) trackStream(s *stream) (stop func()) {
	e.streamsMu.Lock()
	defer e.streamsMu.Unlock()
	if e.streams == nil {
		s.close()
		return func() {}
	}
	e.streams[s] = struct{}{}
	return func() {
		e.streamsMu.Lock()
		defer e.streamsMu.Unlock()
		delete(e.streams, s)
	}
}

// closeStreams closes all connections. Later connections are closed immediately.
func (e *Engine) closeStreams() {
	e.streamsMu.Lock()
	defer e.streamsMu.Unlock()
	for s := range e.streams {
		s.close()
	}
	e.streams = nil
}

// addStream adds a connection to the transport. It returns false if the transport is closed.
func (t *transport) addStream(s *stream) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ctx.Err() != nil {
		return false
	}
	if len(t.streams) == maxStreams {
		t.streams[0].close()
		t.streams = t.streams[1:]
	}
	t.streams = append(t.streams, s)
	return true
}

// removeStream removes a connection that has ended.
func (t *transport) removeStream(s *stream) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.streams = slices.DeleteFunc(t.streams, func(other *stream) bool { return other == s })
}

// enqueue queues a packet. It returns false if the connection is too slow or has ended.
func (s *stream) enqueue(packet []byte) bool {
	if len(packet) > maxPacket {
		return false
	}
	f := frame{frames.Get().(*[maxPacket + 2]byte), 2 + len(packet)}
	binary.BigEndian.PutUint16(f.buffer[:], uint16(len(packet)))
	copy(f.buffer[2:], packet)
	select {
	case <-s.done:
	case s.queue <- f:
		return true
	default:
	}
	frames.Put(f.buffer)
	return false
}

// sendQueued sends queued packets until the connection ends.
func (s *stream) sendQueued() {
	for {
		select {
		case <-s.done:
			return
		case f := <-s.queue:
			_ = s.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
			_, err := s.conn.Write(f.buffer[:f.size])
			frames.Put(f.buffer)
			if err != nil {
				s.close()
				return
			}
		}
	}
}

// close closes the connection.
func (s *stream) close() {
	s.once.Do(func() {
		close(s.done)
		_ = s.conn.Close()
	})
}

// addressOf converts a net.Addr to a netip.AddrPort.
func addressOf(a net.Addr) netip.AddrPort {
	p, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
}
