// Package relay is the WebSocket that browser SDKs open before they do anything
// else: JSON-RPC 2.0, a message a text.
//
// A socket names its fabric token in its first request, signalwire.connect, and
// lives no longer than the token: when that expires or is revoked, on whatever
// node, the socket is told to go (signalwire.disconnect) and closed. Nothing
// hangs: each request is answered, a socket that does not authenticate is closed,
// and so is one that falls silent or does not read.
//
// An idle socket costs one goroutine and small buffers. What a socket is allowed
// is decided by package fabric, which also keeps who is online. The package does
// not carry calls yet: their methods are answered with an error.
package relay

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/coder/websocket"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/web"
)

// Config says what a Relay works with.
type Config struct {
	Fabric *fabric.Fabric
	Limits Limits

	// Observe is told of each request of a client once it is answered: the method,
	// "unknown" for those that are not served, and "ok" or the code of the error.
	// Nil tells nobody.
	Observe func(method, result string)

	Log *slog.Logger // nil means slog.Default()
}

// A Relay serves sockets. Make one with [New], then Run it, and end it with
// Shutdown. Its methods may be called at once from any number of goroutines.
type Relay struct {
	fabric  *fabric.Fabric
	limits  Limits
	observe func(method, result string)
	log     *slog.Logger
	methods map[string]method
	refresh chan *socket // those that have to say again that they are online

	connected, online atomic.Int64

	mu        sync.Mutex
	stopping  bool
	sockets   map[*socket]struct{}
	strangers map[string]int // sockets that have not authenticated, by network
	callers   map[string]int // those that have, by whose token it is
}

// New makes a Relay.
func New(c Config) *Relay {
	r := &Relay{
		fabric: c.Fabric, limits: c.Limits.orDefaults(), observe: c.Observe, log: c.Log,
		refresh: make(chan *socket, refreshing),
		sockets: make(map[*socket]struct{}), strangers: make(map[string]int), callers: make(map[string]int),
	}
	if r.observe == nil {
		r.observe = func(string, string) {}
	}
	if r.log == nil {
		r.log = slog.Default()
	}
	r.methods = served()
	return r
}

// Stats are how many sockets there are.
type Stats struct {
	Sockets   int // all that are open
	Connected int // those that have authenticated
	Online    int // those whose subscriber is online through them
}

// Stats counts the sockets.
func (r *Relay) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Stats{len(r.sockets), int(r.connected.Load()), int(r.online.Load())}
}

// Wanted reports whether a request asks for a WebSocket (RFC 6455, section 4.1).
func Wanted(r *http.Request) bool {
	return r.Method == http.MethodGet &&
		slices.ContainsFunc(strings.Split(r.Header.Get("Upgrade"), ","), func(protocol string) bool {
			return strings.EqualFold(strings.TrimSpace(protocol), "websocket")
		})
}

// ServeHTTP opens a socket. Pages of any origin may: no cookie is read, and who
// does not hold a token has come for nothing.
func (r *Relay) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	from := web.Network(req)
	if status := r.admit(from); status != http.StatusOK {
		w.Header().Set("Retry-After", "1")
		http.Error(w, http.StatusText(status), status)
		return
	}
	s := newSocket(r, from, web.RequestID(req.Context()))
	var err error
	s.conn, err = websocket.Accept(slim{w}, req, &websocket.AcceptOptions{
		InsecureSkipVerify: true,
		OnPingReceived:     s.control,
		OnPongReceived:     func(ctx context.Context, payload []byte) { s.control(ctx, payload) },
	})
	if err != nil {
		r.release(from)
		r.log.DebugContext(req.Context(), "refusing socket", "request_id", s.name, "error", err)
		return // Accept has answered
	}
	s.conn.SetReadLimit(maxConnect)
	if !r.add(s) {
		_ = s.conn.CloseNow() // the server stops at this moment
		r.release(from)
		return
	}
	go s.serve()
}
