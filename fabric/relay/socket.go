package relay

import (
	"context"
	"log/slog"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"

	"github.com/selvage/selvage/fabric"
)

// A socket is one WebSocket. Its goroutine reads and answers one message after
// the other; the watch of the relay looks at it meanwhile.
type socket struct {
	relay  *Relay
	conn   *websocket.Conn
	from   string // the network, while it is a stranger's
	name   string // the request that opened it, in logs
	opened time.Time
	rate   bucket
	out    outbox

	presence sync.Mutex // held while the session store is told about it

	mu       sync.Mutex
	caller   string       // whose token it has, "" before it has authenticated
	id       string       // among the sockets of its subscriber
	token    fabric.Token // valid once there is a caller
	heard    int64        // what this node had heard of revocations when the token was checked
	online   bool
	spoke    time.Time // when the client did last
	pingAt   time.Time
	onlineAt time.Time // when to say again that it is online
	leaving  *farewell // once it was told to go
	over     bool
}

// A farewell is why a socket is closed, and when at the latest.
type farewell struct {
	code   websocket.StatusCode
	reason string
	id     string // of the request that told it
	by     time.Time
}

// Error makes a farewell an error.
func (f *farewell) Error() string { return f.reason }

func newSocket(r *Relay, from, name string) *socket {
	now := time.Now()
	return &socket{relay: r, from: from, name: name, opened: now, spoke: now, pingAt: now.Add(r.limits.Ping)}
}

// add makes a socket known, unless the relay stops.
func (r *Relay) add(s *socket) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopping {
		return false
	}
	r.sockets[s] = struct{}{}
	return true
}

// serve answers messages until the socket is closed, by whomever.
func (s *socket) serve() {
	err := s.read()
	_ = s.conn.CloseNow() // it mostly is already
	s.end(err)
	s.relay.mu.Lock()
	defer s.relay.mu.Unlock()
	delete(s.relay.sockets, s)
}

// read answers messages. The error says how the socket was closed.
func (s *socket) read() error {
	for {
		kind, text, err := s.conn.Read(context.Background())
		switch {
		case err != nil:
			return err
		case kind != websocket.MessageText:
			s.out.close(s.conn, farewell{code: websocket.StatusUnsupportedData, reason: "messages are text"})
		case !utf8.Valid(text):
			s.out.close(s.conn, farewell{code: websocket.StatusInvalidFramePayloadData, reason: "messages are UTF-8"})
		default:
			s.pace()
			if !s.receive(text) {
				s.out.close(s.conn, farewell{code: websocket.StatusInternalError, reason: "internal error"})
			}
		}
	}
}

// control takes a ping or pong of WebSocket itself: a sign of life, too.
func (s *socket) control(context.Context, []byte) bool {
	s.pace()
	s.heardOf()
	return true
}

// pace holds up a client that sends too much, which it feels by its own sending.
func (s *socket) pace() { time.Sleep(s.rate.take(time.Now())) }

// end counts out a socket that is closed. Who has said goodbye is online no more;
// who was lost may come back and take its own place.
func (s *socket) end(err error) {
	s.mu.Lock()
	caller, token, id, leaving := s.caller, s.token, s.id, s.leaving
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
	s.relay.leave(caller)
	s.relay.connected.Add(-1)
	s.presence.Lock()
	defer s.presence.Unlock()
	if !s.setOnline(false) || !isGoodbye(code) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.relay.fabric.Presence.Offline(ctx, token, id); err != nil {
		s.relay.log.Warn("a socket that has gone stays online for up to a minute", "request_id", s.name, "error", err)
	}
}

// isGoodbye reports whether a code says that no other socket will follow: the
// client closed it, or its token is dead.
func isGoodbye(code websocket.StatusCode) bool {
	switch code {
	case websocket.StatusNormalClosure, websocket.StatusGoingAway, websocket.StatusNoStatusRcvd, tokenDead:
		return true
	}
	return false
}

// authenticated returns the token of the socket; ok is false before it has one.
func (s *socket) authenticated() (token fabric.Token, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.token, s.caller != ""
}

// attendance returns the token of the socket, and whether its subscriber is online
// through it; s.presence is held.
func (s *socket) attendance() (token fabric.Token, online bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.token, s.online
}

// setOnline notes whether the socket is online, and gives whether it was.
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
