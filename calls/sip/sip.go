// Package sip connects phones to package calls. Phones register over SIP (RFC 3261) with the SIP
// credentials of a subscriber. They call addresses in the subscriber's project, and ring when the
// subscriber is called.
//
// To package calls, a phone is a client like a browser: [Server.Tell] turns events into SIP
// messages, and SIP messages become commands. The server does not read descriptions of media. A
// call between a phone and a browser differs from a call between two browsers only in calls.Terms.
// Any node can carry the call, but SIP stays on the node where the phone is registered.
//
//	message.go      SIP messages and their headers
//	listen.go       UDP, TCP and TLS; limits before anything is parsed
//	transaction.go  repeated messages over UDP (RFC 3261, section 17)
//	path.go         where responses and the requests of a call are sent
//	digest.go       authentication (RFC 7616, RFC 8760), with SHA-256 or MD5
//	register.go     registrations, which are kept in the session store
//	dialog.go       calls; inbound.go handles calls from phones, outbound.go rings phones
//	refer.go        transfers of calls
//	tell.go         events from package calls
//	gateway.go      calls through gateways
//	registrar.go    registrations at gateways; unregister.go ends them
//	outside.go      calls from gateways, and from anyone to SIP addresses
//
// The server stores nothing for a request outside a call until it has admitted the sender. A wrong
// password and an unknown username get the same answer. After too many wrong passwords, the sender
// gets no answer. Messages to a phone are sent to the address from which the phone authenticated.
//
// Messages are parsed and written by github.com/emiago/sipgo/sip. The server does not use sipgo's
// transports and transactions. They keep an entry for every UDP source forever, and log messages
// that cannot be parsed.
package sip

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
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
	UDP *net.UDPConn // nil if only TLS is served
	TCP net.Listener // nil if UDP is nil
	TLS net.Listener // listens for TLS connections, see Secure; nil disables TLS

	Fabric   *fabric.Fabric
	Sessions session.Store  // holds registrations
	Limits   *limit.Limiter // limits failed authentications; nil limits nothing
	Node     string         // the name of this node
	Alone    bool           // this is the only node
	Digests  []string       // hash functions for passwords, the best first; nil means all

	// These fields are for gateways. Resolver resolves the gateways' host names; nil means the
	// system's resolver. MayReach reports whether a host name may lead to an address; nil permits
	// no address. Roots are the authorities that sign the gateways' certificates; nil means the
	// system's authorities.
	Resolver *net.Resolver
	MayReach func(host string, at netip.AddrPort) bool
	Roots    *x509.CertPool

	// AddressFor returns the address at which the phone can reach this machine.
	AddressFor func(phone netip.Addr) netip.Addr

	Log *slog.Logger // nil means slog.Default()
}

// A Server serves phones. Create one with [New], and start it with Carry and Run. It is safe for
// concurrent use.
type Server struct {
	c     Config
	calls *calls.Calls // set by Carry
	log   *slog.Logger
	ports struct{ plain, secure int } // 0 means not served

	nonces   nonces
	blocked  marks[blockKey]
	silent   marks[silentKey]
	rates    *rates
	accounts accountRates
	open     limit.Connections
	unproven limit.Connections // connections without authentication; open counts them, too
	guests   limit.Connections // connections kept without authentication; open counts them, too
	workers  chan struct{}     // holds one entry for each request being handled
	waiting  chan struct{}     // holds one entry for each request that waits for others of its dialog
	counters counters
	damages  marks[string] // texts of logged errors about passwords of phones that cannot be opened

	mu            sync.Mutex
	streams       map[netip.AddrPort]*stream // TCP connections that phones and gateways opened
	trunks        map[trunk]*stream          // connections that this server opened to gateways
	handling      map[serverKey]bool         // requests outside calls that are being handled
	served        map[serverKey]*serverTx
	sent          map[sentKey]*clientTx
	dialogs       map[dialogKey]*dialog
	legs          map[string]*dialog
	networks      []netip.Prefix         // the networks from which the calls of gateways come
	damaged       map[string]time.Time   // when gateways with a logged Damage were last changed
	registrations map[string]*enrollment // enrollments by the id of the gateway
	leaving       bool                   // Unregister was called

	pinged  map[netip.AddrPort]time.Time // phones registered over UDP, and until when to ping them
	unsaved bool                         // pinged has changed since it was saved
	closed  bool
}

// The limits of a server.
const (
	maxWorkers      = 128    // requests handled at the same time
	maxTransactions = 20_000 // authenticated requests whose repeats are recognized
	maxStreams      = 4_000  // TCP connections
	maxPerNetwork   = 500    // TCP connections from one network
	maxUnproven     = 512    // TCP connections without authentication
	maxUnprovenEach = 64     // TCP connections without authentication, from one network
	maxGuests       = 1_000  // TCP connections kept for calls without authentication
	maxGuestsEach   = 64     // TCP connections kept for calls without authentication, from one network
)

// New returns a Server that uses the sockets in c. UDP and TCP must have the same port.
func New(c Config) *Server {
	if c.Digests == nil {
		c.Digests = []string{"SHA-256", "MD5"}
	}
	if c.Resolver == nil {
		c.Resolver = net.DefaultResolver
	}
	if c.MayReach == nil {
		c.MayReach = func(string, netip.AddrPort) bool { return false }
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails

	s := &Server{
		c:             c,
		log:           c.Log,
		nonces:        nonces{secret: secret},
		open:          limit.Connections{Most: maxStreams, PerNetwork: maxPerNetwork},
		unproven:      limit.Connections{Most: maxUnproven, PerNetwork: maxUnprovenEach},
		guests:        limit.Connections{Most: maxGuests, PerNetwork: maxGuestsEach},
		rates:         newRates(),
		workers:       make(chan struct{}, maxWorkers),
		waiting:       make(chan struct{}, maxWaitingAll),
		streams:       make(map[netip.AddrPort]*stream),
		trunks:        make(map[trunk]*stream),
		handling:      make(map[serverKey]bool),
		served:        make(map[serverKey]*serverTx),
		sent:          make(map[sentKey]*clientTx),
		dialogs:       make(map[dialogKey]*dialog),
		legs:          make(map[string]*dialog),
		pinged:        make(map[netip.AddrPort]time.Time),
		registrations: make(map[string]*enrollment),
	}
	if c.UDP != nil {
		s.ports.plain = c.UDP.LocalAddr().(*net.UDPAddr).Port
	}
	if c.TLS != nil {
		s.ports.secure = c.TLS.Addr().(*net.TCPAddr).Port
	}
	return s
}

// Ports returns the port of UDP and TCP, and the port of TLS. A port that is not served is 0.
func (s *Server) Ports() (plain, secure int) { return s.ports.plain, s.ports.secure }

// Secure makes the TLS listener use c. Call it before Run.
func (s *Server) Secure(c *tls.Config) { s.c.TLS = tls.NewListener(s.c.TLS, c) }

// Carry sets the calls that phones take part in. Call it before Run.
func (s *Server) Carry(c *calls.Calls) { s.calls = c }

// Run serves until ctx ends, and then closes the sockets.
func (s *Server) Run(ctx context.Context) {
	var work sync.WaitGroup
	if s.c.UDP != nil {
		work.Go(listener{s}.readUDP)
		work.Go(func() { listener{s}.accept(s.c.TCP) })
	}
	if s.c.TLS != nil {
		work.Go(func() { listener{s}.accept(s.c.TLS) })
	}
	work.Go(func() { registrar{s}.runGateways(ctx) })
	work.Go(func() { pinger{s}.keepSaved(ctx) })

	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case now := <-tick.C:
			pinger{s}.ping(now)
			allDialogs{s}.check(now)
			s.nonces.sweep(now)
			s.blocked.sweep(now)
			s.silent.sweep(now)
			s.damages.sweep(now)
			s.rates.sweep(now)
			s.accounts.sweep(now)
		}
	}
	_ = s.Close() // never fails
	work.Wait()
}

// Close closes the sockets and connections. It returns no error.
func (s *Server) Close() error {
	if s.c.UDP != nil {
		_ = s.c.UDP.Close() // reading ends even after an error
		_ = s.c.TCP.Close()
	}
	if s.c.TLS != nil {
		_ = s.c.TLS.Close()
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, t := range s.streams {
		t.close()
	}

	for _, t := range s.trunks {
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

// counters holds the counts behind [Stats].
type counters struct {
	received, malformed, limited, registered, denied, blocked atomic.Uint64
	inbound, outbound                                         atomic.Uint64
	sent, answered                                            classes
}

// classes counts responses by the first digit of their status.
type classes [7]atomic.Uint64

// add counts a response. An invalid status counts as 0.
func (c *classes) add(status int) {
	if class := status / 100; class > 0 && class < len(c) {
		c[class].Add(1)
		return
	}
	c[0].Add(1)
}

// load returns the counts.
func (c *classes) load() (counts [7]uint64) {
	for class := range c {
		counts[class] = c[class].Load()
	}
	return counts
}

// Stats holds a server's metrics.
type Stats struct {
	Received   uint64    // messages
	Malformed  uint64    // messages that could not be parsed, or lacked a required header
	Limited    uint64    // messages and connections above the limits of their network or the server
	Registered uint64    // accepted registrations, including renewals
	Denied     uint64    // requests with wrong credentials
	Blocked    uint64    // requests that got no answer after too many wrong credentials
	Inbound    uint64    // calls from phones
	Outbound   uint64    // invitations to phones
	Sent       [7]uint64 // responses to phones, by the first digit of their status, without repeats
	Answered   [7]uint64 // responses from phones, by the first digit of their status
	Dialogs    int       // current dialogs
	Gateways   int       // current registrations at gateways
	Streams    int       // current TCP connections
}

// Stats returns the current metrics.
func (s *Server) Stats() Stats {
	c := &s.counters
	st := Stats{
		Received:   c.received.Load(),
		Malformed:  c.malformed.Load(),
		Limited:    c.limited.Load(),
		Registered: c.registered.Load(),
		Denied:     c.denied.Load(),
		Blocked:    c.blocked.Load(),
		Inbound:    c.inbound.Load(),
		Outbound:   c.outbound.Load(),
		Sent:       c.sent.load(),
		Answered:   c.answered.load(),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st.Dialogs, st.Streams = len(s.legs), len(s.streams)+len(s.trunks)
	for _, r := range s.registrations {
		if time.Now().Before(r.until) {
			st.Gateways++
		}
	}
	return st
}
