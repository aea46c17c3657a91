package sip

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// The maximum sizes of the headers and the body of a message. Messages from phones usually have one to
// two kilobytes.
const (
	maxHead = 8 << 10
	maxBody = 16 << 10
)

// A flow is the path of messages from a phone to the server and back.
type flow struct {
	udp    *net.UDPConn // nil for TCP
	tcp    *stream
	remote netip.AddrPort // where messages are sent

	// sentFrom is the source of a request whose responses go to a different port of the same address, or
	// zero. The request itself names that port, so the port does not prove who sent the request.
	sentFrom netip.AddrPort
}

// sender returns the address and port from which the request was sent.
func (f flow) sender() netip.AddrPort {
	if f.sentFrom.IsValid() {
		return f.sentFrom
	}
	return f.remote
}

// network returns the name of the transport for Via headers.
func (f flow) network() string {
	switch {
	case f.tcp == nil:
		return "UDP"
	case f.isSecure():
		return "TLS"
	}
	return "TCP"
}

// isSecure reports whether messages on the path are encrypted.
func (f flow) isSecure() bool { return f.tcp != nil && f.tcp.isTLS() }

// hasEnded reports whether the path was a TCP connection that has been closed.
func (f flow) hasEnded() bool { return f.tcp != nil && f.tcp.isClosed() }

// write sends a message without waiting. If the message cannot be sent, it is repeated later, or
// its transaction times out.
func (f flow) write(b []byte) {
	if f.tcp != nil {
		f.tcp.send(b)
		return
	}
	_, _ = f.udp.WriteToUDPAddrPort(b, f.remote)
}

// source returns the address of the phone. Nonces and dialogs are bound to it.
func (f flow) source() netip.Addr { return f.remote.Addr() }

// A listener reads the messages that a [Server] receives, and limits its connections.
type listener struct{ *Server }

// readUDP handles datagrams until the socket is closed.
func (s listener) readUDP() {
	b := make([]byte, maxHead+maxBody)
	for {
		n, remote, err := s.c.UDP.ReadFromUDPAddrPort(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		remote = unmapped(remote)
		if n == len(b) || !s.admits(remote.Addr()) || isPing(b[:n]) {
			continue
		}
		s.receive(bytes.Clone(b[:n]), flow{udp: s.c.UDP, remote: remote})
	}
}

// isPing reports whether a packet only keeps a NAT mapping alive.
func isPing(b []byte) bool { return len(bytes.Trim(b, "\r\n\x00")) == 0 }

// admits counts a message from an address, and reports whether it may be handled.
func (s *Server) admits(a netip.Addr) bool {
	s.counters.received.Add(1)
	if !s.rates.allow(networkOf(a), time.Now()) {
		s.counters.limited.Add(1)
		return false
	}
	return true
}

// accept accepts connections of TCP or TLS until the listener is closed. The TLS handshake takes
// place when the first message is read, and counts toward strangerFor.
func (s listener) accept(from net.Listener) {
	for {
		conn, err := from.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // for example too many open files; closed connections will free some
			time.Sleep(100 * time.Millisecond)
			continue
		}

		remote, err := remoteOf(conn)
		if err != nil || !s.admitConnection(remote.Addr()) {
			s.counters.limited.Add(1)
			_ = conn.Close()
			continue
		}

		t := newStream(conn)
		t.keep = sync.OnceFunc(func() {
			t.kept.Store(true)
			_ = conn.SetReadDeadline(time.Now().Add(idleFor)) // fails only for an ended connection
			s.unproven.Remove(remote.Addr())
		})
		go s.serveTCP(t, remote)
	}
}

// remoteOf returns the address of a connection's client.
func remoteOf(conn net.Conn) (netip.AddrPort, error) {
	a, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return netip.AddrPort{}, err
	}
	return unmapped(a), nil
}

// unmapped returns the IPv4 address of an IPv4-mapped IPv6 address, and other addresses unchanged.
func unmapped(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }

// admitConnection counts a connection, and reports whether it may be served. Connections without
// authentication have a separate limit, so that they do not keep phones out.
func (s listener) admitConnection(from netip.Addr) bool {
	if !s.open.Add(from) {
		return false
	}
	if !s.unproven.Add(from) {
		s.open.Remove(from)
		return false
	}
	return true
}

const (
	streamQueue  = 64               // messages queued for a slow connection
	writeTimeout = 10 * time.Second // the time to write one message
	strangerFor  = 32 * time.Second // how long an unauthenticated connection may remain
	idleFor      = 15 * time.Minute // how long a silent connection may remain
)

// A stream is a TCP connection, with or without TLS, to a phone or a gateway.
type stream struct {
	conn   net.Conn
	queue  chan []byte
	done   chan struct{}
	once   sync.Once
	proven atomic.Bool  // the client has authenticated
	kept   atomic.Bool  // the client has authenticated or is in a call, so the connection may remain
	guest  atomic.Bool  // the connection counts against maxGuests
	keep   func()       // sets kept and a later deadline, and stops counting the connection as unproven
	id     string       // random; the phone's bindings contain it
	heard  atomic.Int64 // when the last message or ping arrived, as Unix time in nanoseconds, or 0
}

// isTLS reports whether the connection is encrypted.
func (t *stream) isTLS() bool {
	_, ok := t.conn.(*tls.Conn)
	return ok
}

func newStream(conn net.Conn) *stream {
	return &stream{conn: conn, queue: make(chan []byte, streamQueue), done: make(chan struct{}), id: rand.Text()}
}

// send queues a message. If the queue is full, send closes the connection.
func (t *stream) send(b []byte) {
	select {
	case t.queue <- b:
	default:
		t.close()
	}
}

func (t *stream) close() {
	t.once.Do(func() {
		close(t.done)
		_ = t.conn.Close() // the phone notices either way
	})
}

// isClosed reports whether the connection has been closed.
func (t *stream) isClosed() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

// write sends queued messages until the connection is closed.
func (t *stream) write() {
	for {
		select {
		case <-t.done:
			return
		case b := <-t.queue:
			_ = t.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
			if _, err := t.conn.Write(b); err != nil {
				t.close()
				return
			}
		}
	}
}

// serveTCP handles the messages of a connection until it ends.
func (s listener) serveTCP(t *stream, remote netip.AddrPort) {
	defer s.open.Remove(remote.Addr())
	defer t.keep()
	defer outsiders(s).forgetGuest(flow{tcp: t, remote: remote})
	defer t.close()
	if !s.addStream(t, remote) {
		return
	}
	defer s.removeStream(t, remote)
	go t.write()
	_ = t.conn.SetReadDeadline(time.Now().Add(strangerFor))
	s.readStream(t, remote)
}

// readStream handles the messages of a connection until it ends.
func (s listener) readStream(t *stream, remote netip.AddrPort) {
	f := flow{tcp: t, remote: remote}
	in := bufio.NewReaderSize(t.conn, maxHead)
	pong := func() { // pings count as messages, like those over UDP
		if !s.admits(remote.Addr()) {
			t.close()
			return
		}
		t.heard.Store(time.Now().UnixNano())
		t.send([]byte("\r\n"))
	}
	for {
		b, err := readMessage(in, pong)
		if err != nil || !s.admits(remote.Addr()) {
			return
		}
		t.heard.Store(time.Now().UnixNano())
		if t.kept.Load() {
			_ = t.conn.SetReadDeadline(time.Now().Add(idleFor))
		}
		s.receive(b, f)
	}
}

func (s listener) addStream(t *stream, remote netip.AddrPort) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.streams[remote] = t
	return true
}

func (s listener) removeStream(t *stream, remote netip.AddrPort) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streams[remote] == t {
		delete(s.streams, remote)
	}
}

var errTooLong = errors.New("a SIP message is too long or has no length")

// readMessage reads a message from a stream (RFC 3261, section 18.3). It calls pong for each ping
// before the message (RFC 5626, section 3.5.1).
func readMessage(in *bufio.Reader, pong func()) ([]byte, error) {
	var head []byte
	length := -1
	emptyLines := 0 // before the message; two of them are a ping
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return nil, err
		}
		blank := len(bytes.TrimRight(line, "\r\n")) == 0
		if blank && len(head) == 0 {
			emptyLines++
			if emptyLines%2 == 0 {
				pong()
			}
			continue
		}

		head = append(head, line...)
		if len(head) > maxHead {
			return nil, errTooLong
		}
		if blank {
			break
		}
		if n, ok := contentLength(line); ok {
			length = n
		}
	}

	if length < 0 || length > maxBody {
		return nil, errTooLong
	}
	message := append(head, make([]byte, length)...)
	if _, err := io.ReadFull(in, message[len(head):]); err != nil {
		return nil, err
	}
	return message, nil
}

// contentLength parses a Content-Length header or its compact form. It returns false for other
// headers. For an invalid value, it returns a length above the limit.
func contentLength(line []byte) (int, bool) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	name = bytes.TrimSpace(name)
	if !bytes.EqualFold(name, []byte("Content-Length")) && !bytes.EqualFold(name, []byte("l")) {
		return 0, false
	}
	n, err := strconv.ParseUint(string(bytes.TrimSpace(value)), 10, 31)
	if err != nil {
		return maxBody + 1, true
	}
	return int(n), true
}
