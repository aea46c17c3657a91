package turn

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/pion/logging"
)

// A connection must have an allocation within proofTimeout, so that strangers occupy nothing for
// long. maxUnproven is how many connections may lack one, and maxPerNetwork how many of one network.
const (
	proofTimeout  = 10 * time.Second
	maxUnproven   = 1024
	maxPerNetwork = 128
)

// A listener accepts connections of clients, and closes those that are too many.
type listener struct {
	net.Listener
	server *Server

	mu       sync.Mutex
	unproven int
	networks map[netip.Prefix]int // those unproven, by network
}

// Accept implements [net.Listener].
func (l *listener) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil, err
		}
		if err != nil { // out of file descriptors, say: others may end soon
			time.Sleep(100 * time.Millisecond)
			continue
		}
		c := &conn{Conn: raw, listener: l, network: networkOf(addressOf(raw.RemoteAddr()).Addr())}
		if !l.add(c.network) {
			_ = raw.Close()
			continue
		}
		_ = raw.SetReadDeadline(l.server.proofDeadline()) // fails only if the connection has ended

		l.server.mu.Lock()
		l.server.conns[raw.RemoteAddr().String()] = c
		l.server.mu.Unlock()
		return c, nil
	}
}

// proofDeadline returns by when a new connection must have an allocation.
func (s *Server) proofDeadline() time.Time {
	return time.Now().Add(time.Duration(s.proof.Load()))
}

func (l *listener) add(n netip.Prefix) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unproven == maxUnproven || l.networks[n] == maxPerNetwork {
		return false
	}
	if l.networks == nil {
		l.networks = map[netip.Prefix]int{}
	}
	l.unproven++
	l.networks[n]++
	return true
}

func (l *listener) remove(n netip.Prefix) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unproven--
	if l.networks[n]--; l.networks[n] == 0 {
		delete(l.networks, n)
	}
}

// A conn is the connection of a client.
type conn struct {
	net.Conn
	listener *listener
	network  netip.Prefix

	mu     sync.Mutex
	proven bool
	closed bool
}

// prove notes that the client has an allocation.
func (c *conn) prove() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.proven || c.closed {
		return
	}
	c.proven = true
	c.listener.remove(c.network)
	_ = c.SetReadDeadline(time.Time{}) // fails only if the connection has ended
}

// unprove closes the connection: its allocation has ended.
func (c *conn) unprove() { _ = c.Conn.Close() }

// Close implements [net.Conn].
func (c *conn) Close() error {
	c.mu.Lock()
	if !c.closed && !c.proven {
		c.listener.remove(c.network)
	}
	c.closed = true
	c.mu.Unlock()

	s := c.listener.server
	s.mu.Lock()
	if at := c.RemoteAddr().String(); s.conns[at] == c {
		delete(s.conns, at)
	}
	s.mu.Unlock()
	return c.Conn.Close()
}

// networkOf returns the block of addresses that one customer of a provider may own, as package
// limit counts them: a /24 of IPv4 or a /48 of IPv6.
func networkOf(a netip.Addr) netip.Prefix {
	bits := 48
	if a.Is4() {
		bits = 24
	}
	p, _ := a.Prefix(bits) // fails only for no address, which is a network too
	return p
}

// quiet discards what the TURN library logs: strangers can cause any amount of it.
type quiet struct{}

// NewLogger implements [logging.LoggerFactory].
func (quiet) NewLogger(string) logging.LeveledLogger { return quiet{} }

func (quiet) Trace(string)          {}
func (quiet) Tracef(string, ...any) {}
func (quiet) Debug(string)          {}
func (quiet) Debugf(string, ...any) {}
func (quiet) Info(string)           {}
func (quiet) Infof(string, ...any)  {}
func (quiet) Warn(string)           {}
func (quiet) Warnf(string, ...any)  {}
func (quiet) Error(string)          {}
func (quiet) Errorf(string, ...any) {}
