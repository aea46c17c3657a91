package turn

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/pion/logging"

	"github.com/selvage/selvage/internal/limit"
)

// A connection must have an allocation within proofTimeout, so that unauthenticated clients do not
// use resources for long. maxUnproven limits how many connections may lack an allocation.
// maxPerNetwork limits these connections for one network.
const (
	proofTimeout  = 10 * time.Second
	maxUnproven   = 1024
	maxPerNetwork = 128
)

// A listener accepts connections from clients, and closes those that exceed a limit.
type listener struct {
	net.Listener
	server   *Server
	unproven limit.Connections // connections without an allocation
}

// Accept implements [net.Listener].
func (l *listener) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil, err
		}
		if err != nil { // for example out of file descriptors; other connections may end
			time.Sleep(100 * time.Millisecond)
			continue
		}
		c := &conn{Conn: raw, listener: l, client: addressOf(raw.RemoteAddr()).Addr()}
		if !l.unproven.Add(c.client) {
			_ = raw.Close()
			continue
		}
		_ = raw.SetReadDeadline(l.server.proofDeadline()) // fails only for an ended connection

		l.server.mu.Lock()
		l.server.conns[raw.RemoteAddr().String()] = c
		l.server.mu.Unlock()
		return c, nil
	}
}

// proofDeadline returns the time by which a new connection must have an allocation.
func (s *Server) proofDeadline() time.Time {
	return time.Now().Add(time.Duration(s.proof.Load()))
}

// A conn is a connection from a client.
type conn struct {
	net.Conn
	listener *listener
	client   netip.Addr

	mu     sync.Mutex
	proven bool
	closed bool
}

// prove records that the client has an allocation.
func (c *conn) prove() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.proven || c.closed {
		return
	}
	c.proven = true
	c.listener.unproven.Remove(c.client)
	_ = c.SetReadDeadline(time.Time{}) // fails only for an ended connection
}

// unprove closes the connection after its allocation has ended.
func (c *conn) unprove() { _ = c.Conn.Close() }

// Close implements [net.Conn].
func (c *conn) Close() error {
	c.mu.Lock()
	if !c.closed && !c.proven {
		c.listener.unproven.Remove(c.client)
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

// quiet discards the logs of the TURN library, because unauthenticated clients can cause unlimited
// log entries.
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
