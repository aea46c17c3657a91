// Package sip connects phones to package calls. Phones register by SIP (RFC 3261) with the SIP
// credentials of a subscriber, call addresses of its project, and ring when the subscriber is
// called.
//
// To package calls, a phone is a client like a browser: [Server.Tell] turns events into SIP
// messages, and SIP messages become commands. Descriptions of media pass through unread, so a call
// between a phone and a browser differs from one between two browsers only in calls.Terms. Any node
// can carry the call; SIP stays on the node where the phone is registered.
//
//	message.go      SIP messages; the only file that depends on how sipgo represents headers
//	listen.go       UDP and TCP; limits before anything is parsed
//	transaction.go  repeats over UDP, and replies to repeats (RFC 3261, section 17)
//	digest.go       authentication (RFC 7616, RFC 8760), with SHA-256 or MD5
//	register.go     registrations, which are kept in the session store
//	dialog.go       calls; inbound.go is about calls that phones make, outbound.go about their ringing
//	tell.go         events of package calls
//
// Requests outside a call are answered without keeping anything until they are authenticated. A
// request with a wrong password and one with an unknown username get the same answer. After too
// many of them, their sender gets none. What is sent to a phone goes to the address from which it
// authenticated.
//
// Messages are parsed and written by github.com/emiago/sipgo/sip. Its transports and transactions
// are not used: they keep an entry for every UDP source ever seen, and log what cannot be parsed.
package sip

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/limit"
	"github.com/selvage/selvage/internal/session"
)

// Config holds the dependencies of a Server.
type Config struct {
	UDP *net.UDPConn // required
	TCP net.Listener // required

	Fabric   *fabric.Fabric
	Sessions session.Store  // holds registrations
	Limits   *limit.Limiter // limits failed authentications; nil limits nothing
	Node     string         // the name of this node
	Alone    bool           // this is the only node
	Digests  []string       // names of the hash functions for passwords, the best first; nil means all

	// AddressFor returns the address of this machine that a phone can reach.
	AddressFor func(phone netip.Addr) netip.Addr

	Log *slog.Logger // nil means slog.Default()
}

// A Server serves phones. Create one with [New], and start it with Carry and Run. It is safe for
// concurrent use.
type Server struct {
	c     Config
	calls *calls.Calls // set by Carry
	log   *slog.Logger
	port  int

	nonces   nonces
	blocked  blocks
	rates    rates
	open     limit.Connections
	workers  chan struct{} // holds one entry for each request being handled
	counters counters

	mu      sync.Mutex
	streams map[netip.AddrPort]*stream // TCP connections
	served  map[serverKey]*serverTx
	sent    map[string]*clientTx // by branch
	dialogs map[dialogKey]*dialog
	legs    map[string]*dialog
	pinged  map[netip.AddrPort]time.Time // UDP addresses of phones registered here, and until when
	closed  bool
}

// Limits on what a server keeps.
const (
	maxWorkers      = 128    // requests handled at the same time
	maxTransactions = 20_000 // authenticated requests whose repeats are recognized
	maxStreams      = 4_000  // TCP connections
	maxPerNetwork   = 500    // TCP connections from one network
	maxPinged       = 50_000 // phones behind NAT
)

// New returns a Server that listens on the sockets in c. Both have the same port.
func New(c Config) *Server {
	if c.Digests == nil {
		c.Digests = []string{"SHA-256", "MD5"}
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails
	return &Server{
		c: c, log: c.Log, port: c.UDP.LocalAddr().(*net.UDPAddr).Port,
		nonces: nonces{secret: secret}, open: limit.Connections{Most: maxStreams, PerNetwork: maxPerNetwork},
		workers: make(chan struct{}, maxWorkers),
		streams: make(map[netip.AddrPort]*stream), served: make(map[serverKey]*serverTx),
		sent: make(map[string]*clientTx), dialogs: make(map[dialogKey]*dialog), legs: make(map[string]*dialog),
		pinged: make(map[netip.AddrPort]time.Time),
	}
}

// Port returns the number of the UDP and TCP ports.
func (s *Server) Port() int { return s.port }

// Carry sets the calls that phones take part in. Call it before Run.
func (s *Server) Carry(c *calls.Calls) { s.calls = c }

// pingEvery is the interval between packets that keep the way through a NAT open. Some forget it
// after 30 seconds (RFC 4787, section 4.3).
const pingEvery = 20 * time.Second

// Run serves until ctx ends, and then closes the sockets.
func (s *Server) Run(ctx context.Context) {
	var work sync.WaitGroup
	work.Go(s.readUDP)
	work.Go(s.acceptTCP)
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case now := <-tick.C:
			s.ping(now)
			s.nonces.sweep(now)
			s.blocked.sweep(now)
			s.rates.sweep(now)
		}
	}
	_ = s.Close() // returns no error
	work.Wait()
}

// Close closes the sockets and connections. It returns no error.
func (s *Server) Close() error {
	_ = s.c.UDP.Close() // reading ends either way
	_ = s.c.TCP.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, t := range s.streams {
		t.close()
	}
	for _, t := range s.sent {
		t.stop()
	}
	for _, t := range s.served {
		t.stop()
	}
	return nil
}

// ping sends a packet to each phone behind NAT that is registered here by UDP (RFC 5626, section
// 4.4.1), and forgets expired ones.
func (s *Server) ping(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for a, until := range s.pinged {
		if now.After(until) {
			delete(s.pinged, a)
			continue
		}
		_, _ = s.c.UDP.WriteToUDPAddrPort([]byte("\r\n\r\n"), a) // the phone repeats its registration
	}
}

// counters count what a server has done.
type counters struct {
	received, malformed, limited, registered, denied, blocked atomic.Uint64
	inbound, outbound                                         atomic.Uint64
}

// Stats holds a server's metrics.
type Stats struct {
	Received   uint64 // messages
	Malformed  uint64 // messages that could not be parsed, or lacked something
	Limited    uint64 // messages dropped because their network or the server had too many
	Registered uint64 // accepted registrations, with each renewal
	Denied     uint64 // requests with wrong credentials
	Blocked    uint64 // requests that got no answer after too many wrong credentials
	Inbound    uint64 // calls from phones
	Outbound   uint64 // invitations to phones
	Dialogs    int    // now
	Streams    int    // TCP connections now
}

// Stats returns the current metrics.
func (s *Server) Stats() Stats {
	c := &s.counters
	st := Stats{Received: c.received.Load(), Malformed: c.malformed.Load(), Limited: c.limited.Load(),
		Registered: c.registered.Load(), Denied: c.denied.Load(), Blocked: c.blocked.Load(),
		Inbound: c.inbound.Load(), Outbound: c.outbound.Load()}
	s.mu.Lock()
	defer s.mu.Unlock()
	st.Dialogs, st.Streams = len(s.legs), len(s.streams)
	return st
}
