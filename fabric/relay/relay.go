// Package relay serves the WebSockets that browser SDKs open before they do anything else. The
// protocol is JSON-RPC 2.0, with one message per text frame.
//
// A client presents its fabric token in the first request, signalwire.connect, and its socket does
// not outlive the token. When the token expires or is revoked on any node, the server asks the
// client to disconnect (signalwire.disconnect) and closes the socket. Each request with an id is
// answered unless its socket is about to close. A socket is closed if its client does not
// authenticate, becomes silent or does not read.
//
// An idle socket costs one goroutine and small buffers. Package fabric decides what a socket may
// do, and records which subscribers are online. Package calls handles the calls that a client makes
// and receives. Package chat handles a client's messages.
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

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
)

// Config holds the dependencies of a Relay.
type Config struct {
	Fabric *fabric.Fabric
	Limits Limits
	Node   string // the name of this node, for events and presence

	// Confirm checks the proof of possession that a token bound to a key requires. It returns
	// problem.Unauthenticated if the proof was made for another method, or with a key that does not
	// have this thumbprint. If Confirm is nil, proofs are not checked.
	Confirm func(ctx context.Context, method, proof, thumbprint string) error

	// Observe is called for each handled request. If the relay does not serve the method, method
	// is "unknown". result is "ok" or the error code. Observe may be nil.
	Observe func(method, result string)

	Log *slog.Logger // nil means slog.Default()
}

// A Relay serves sockets. Create one with [New], start it with Run, and stop it with
// Shutdown. A Relay is safe for concurrent use.
type Relay struct {
	fabric  *fabric.Fabric
	limits  Limits
	confirm func(ctx context.Context, method, proof, thumbprint string) error
	observe func(method, result string)
	log     *slog.Logger
	methods map[string]method
	node    string
	calls   *calls.Calls // nil if the server does not serve calls; set before the first socket

	iceServers func(fabric.Token) []ICEServer // may be nil; set before the first socket
	refresh    chan *socket                   // sockets whose presence must be renewed

	connected, online atomic.Int64

	mu              sync.Mutex
	stopping        bool
	sockets         map[*socket]struct{}
	named           map[string]*socket // authenticated sockets, by id
	unauthenticated map[string]int     // sockets that have not authenticated, by network
	callers         map[string]int     // sockets that have authenticated, by the token's holder
	readers         readers            // sockets that receive messages
}

// New returns a Relay with the dependencies in c.
func New(c Config) *Relay {
	r := &Relay{
		fabric: c.Fabric, node: c.Node, limits: c.Limits.orDefaults(), confirm: c.Confirm,
		observe: c.Observe, log: c.Log,
		refresh: make(chan *socket, refreshing),
		sockets: make(map[*socket]struct{}), named: make(map[string]*socket),
		unauthenticated: make(map[string]int), callers: make(map[string]int), readers: make(readers),
	}
	if r.confirm == nil {
		r.confirm = func(context.Context, string, string, string) error { return nil }
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

// Carry makes the relay serve calls. It must run before the first socket opens.
func (r *Relay) Carry(c *calls.Calls) { r.calls = c }

// An ICEServer is a STUN or TURN server, in the form that RTCPeerConnection expects (W3C WebRTC,
// section 4.2.4).
type ICEServer struct {
	URLs       []string `json:"urls"`
	Username   string   `json:"username"`
	Credential string   `json:"credential"`
}

// OfferICE sets the function that returns the ICE servers to offer to the client with a token. Call it
// before the first socket opens. If one of the servers does not work, the SDK's calls fail.
func (r *Relay) OfferICE(servers func(fabric.Token) []ICEServer) { r.iceServers = servers }

// Stats counts sockets.
type Stats struct {
	Sockets   int // all open sockets
	Connected int // open sockets that have authenticated
	Online    int // open sockets through which a subscriber is online
}

// Stats returns the current counts.
func (r *Relay) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Stats{Sockets: len(r.sockets), Connected: int(r.connected.Load()), Online: int(r.online.Load())}
}

// Wanted reports whether a request asks for a WebSocket (RFC 6455, section 4.1).
func Wanted(r *http.Request) bool {
	return r.Method == http.MethodGet &&
		slices.ContainsFunc(strings.Split(r.Header.Get("Upgrade"), ","), func(protocol string) bool {
			return strings.EqualFold(strings.TrimSpace(protocol), "websocket")
		})
}

// ServeHTTP opens a socket. It accepts requests from pages of any origin, because it reads no
// cookies and a socket can do nothing without a token.
func (r *Relay) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	// Accept overwrites this header unless it refuses the upgrade. Some proxies treat any response
	// to an upgrade request as success, and would then miss further requests on the connection.
	w.Header().Set("Connection", "close")

	from := web.Network(req)
	if status := r.admit(from); status != http.StatusOK {
		w.Header().Set("Retry-After", "1")
		web.Refuse(req.Context(), problem.New(problem.RateLimited, "", "too many sockets are open"))
		http.Error(w, http.StatusText(status), status)
		return
	}

	s := newSocket(r, from, web.RequestID(req.Context()))
	s.certificate = web.CertificateBinding(req)
	var err error
	s.conn, err = websocket.Accept(slim{w}, req, &websocket.AcceptOptions{
		InsecureSkipVerify: true,
		OnPingReceived:     s.control,
		OnPongReceived:     func(ctx context.Context, payload []byte) { s.control(ctx, payload) },
	})
	if err != nil {
		r.release(from)
		r.log.DebugContext(req.Context(), "refusing socket", "request_id", s.name, "error", err)
		return // Accept has responded
	}

	s.out.conn = s.conn
	s.conn.SetReadLimit(maxConnect)
	if !r.add(s) { // Shutdown began in the meantime
		r.release(from)
		_ = s.conn.Close(stopped.code, stopped.reason)
		return
	}

	go s.serve()
}
