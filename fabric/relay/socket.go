package relay

import (
	"context"
	"log/slog"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
)

// A socket is one WebSocket. Its goroutine reads and answers the messages one after the other,
// while Run watches it.
type socket struct {
	relay  *Relay
	conn   *websocket.Conn
	from   string // the client's network, which counts the socket until it authenticates
	name   string // the id of the HTTP request that opened the socket, for logs
	opened time.Time
	rate   bucket
	out    outbox
	events held // events held back until a request is answered

	certificate string // the binding to the client's certificate, or ""

	presence sync.Mutex // held while presence is read or changed

	mu       sync.Mutex
	caller   string       // the token's holder; "" before authentication
	id       string       // the id of the socket among the subscriber's sockets
	token    fabric.Token // set if the socket has a caller
	heard    int64        // the result of Tokens.Heard when the token was last checked
	online   bool
	spoke    time.Time // when the client was last heard from
	pingAt   time.Time
	onlineAt time.Time // when to renew presence
	leaving  *farewell // set after the client was asked to disconnect
	over     bool
}

// A farewell is the reason for closing a socket, and the time by which it must be closed.
type farewell struct {
	code   websocket.StatusCode
	reason string
	id     string // the id of the signalwire.disconnect request
	by     time.Time
}

// Error returns the reason.
func (f *farewell) Error() string { return f.reason }

func newSocket(r *Relay, from, name string) *socket {
	now := time.Now()
	return &socket{relay: r, from: from, name: name, opened: now, spoke: now, pingAt: now.Add(r.limits.Ping)}
}

// add registers a socket. It returns false if the relay is shutting down.
func (r *Relay) add(s *socket) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopping {
		return false
	}
	r.sockets[s] = struct{}{}
	return true
}

// serve answers messages until either side closes the socket.
func (s *socket) serve() {
	err := s.read()
	_ = s.conn.CloseNow() // usually already closed
	s.end(err)
	s.relay.mu.Lock()
	defer s.relay.mu.Unlock()
	delete(s.relay.sockets, s)
}

// read answers messages until the socket is closed. The error contains the close code.
func (s *socket) read() error {
	for {
		kind, text, err := s.conn.Read(context.Background())
		switch {
		case err != nil:
			return err
		case kind != websocket.MessageText:
			s.out.close(farewell{code: websocket.StatusUnsupportedData, reason: "messages must be text"})
		case !utf8.Valid(text):
			s.out.close(farewell{code: websocket.StatusInvalidFramePayloadData, reason: "messages must be UTF-8"})
		default:
			s.pace()
			if !s.receive(text) {
				s.out.close(farewell{code: websocket.StatusInternalError, reason: "internal error"})
			}
		}
	}
}

// control records that the client is alive when a WebSocket ping or pong frame arrives.
func (s *socket) control(context.Context, []byte) bool {
	s.pace()
	s.heardOf()
	return true
}

// pace slows down a client that sends too much. It delays the next read.
func (s *socket) pace() { time.Sleep(s.rate.take(time.Now())) }

// end removes a closed socket from the counts. If the client closed the socket, or its token is no
// longer valid, its presence ends. If the connection was lost, the presence remains for a while, so
// that the client can resume the socket.
func (s *socket) end(err error) {
	s.mu.Lock()
	caller, token := s.caller, s.token
	id, leaving := s.id, s.leaving
	s.over = true
	s.mu.Unlock()

	code := websocket.CloseStatus(err)
	if leaving != nil {
		code = leaving.code
	}

	if s.relay.log.Enabled(context.Background(), slog.LevelDebug) {
		s.relay.log.Debug("socket closed", "request_id", s.name, "code", int(code), "connected", caller != "",
			"open", time.Since(s.opened).Round(time.Millisecond))
	}

	if caller == "" {
		s.relay.release(s.from)
		return
	}

	s.relay.uncountCaller(caller)
	s.relay.connected.Add(-1)
	s.relay.forget(s, id, token)
	s.presence.Lock()
	defer s.presence.Unlock()
	if !s.setOnline(false) || !isGoodbye(code) {
		return
	}

	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.relay.fabric.Presence.Offline(ctx, token, id); err != nil {
		s.relay.log.Warn("a closed socket stays online for up to a minute", "request_id", s.name, "error", err)
	}
}

// isGoodbye reports whether the client will not resume the socket. This is the case if the client
// closed the socket, or its token is no longer valid.
func isGoodbye(code websocket.StatusCode) bool {
	switch code {
	case websocket.StatusNormalClosure, websocket.StatusGoingAway, websocket.StatusNoStatusRcvd, tokenDead:
		return true
	}
	return false
}

// authenticated returns the socket's token. ok is false before authentication.
func (s *socket) authenticated() (token fabric.Token, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.token, s.caller != ""
}

// client returns the calls.Client that represents the socket in package calls.
func (s *socket) client() calls.Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	return calls.Client{Token: s.token, Socket: calls.Socket{Node: s.relay.node, ID: s.id}}
}

// attendance returns the socket's token. online reports whether the token's subscriber is online
// through this socket. s.presence must be held.
func (s *socket) attendance() (token fabric.Token, online bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.token, s.online
}

// setOnline records whether the socket is online. It returns the previous state.
func (s *socket) setOnline(online bool) (was bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was, s.online = s.online, online
	s.onlineAt = time.Now().Add(fabric.StayOnline)
	switch {
	case online && !was:
		s.relay.online.Add(1)
	case was && !online:
		s.relay.online.Add(-1)
	}
	return was
}
