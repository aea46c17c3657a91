// Package media is the built-in engine for calls. It carries audio and video between browsers
// without another server.
//
// Every media section of a leg has its own transport. A transport consists of an ICE lite agent
// (RFC 8445), DTLS-SRTP (RFC 5764) and one RTP stream in each direction. All transports share one
// UDP port. For networks that block UDP, they also share the TCP port with the same number (RFC
// 6544). A packet from a client is decrypted, rewritten to continue the stream that the linked
// client receives, encrypted and sent. The goroutine that read the packet does all this without
// waiting and without allocating memory.
//
// The engine decodes only the audio of rooms and scripts. The goroutine of a mixer does this,
// except for Opus, which the goroutine that read the packet decodes.
//
// Nobody can make the engine send media to a third party. It ignores the candidates in
// descriptions. Over UDP, it sends media, keys and reports only to addresses that answered a STUN
// check with the client's password. It repeats these checks while an address is in use (RFC 7675).
// Any other address receives only checks, and answers to signed requests that came from it.
//
// Phones do not use STUN. The engine exchanges RTP only with the address that a phone has proved by
// authenticating to the program that uses the engine. An address without this proof gets only a few packets
// until media arrives from it. Each section of a phone has its own UDP port. See calls.Terms.
package media

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/internal/limit"
)

// Config configures an Engine. The zero value listens on a free port of all addresses.
type Config struct {
	// Listen is the address for UDP and TCP, such as ":8444". Port 0 selects a port that is free
	// for both.
	Listen string

	// Advertise lists the addresses that descriptions offer to clients, the best first. Port 0
	// means the port of Listen. If the list is empty, the engine advertises the address in Listen
	// or, if that address is unspecified, the addresses of this machine.
	Advertise []netip.AddrPort

	NoUDP, NoTCP bool

	// Ports are the UDP ports for phones, at the address in Listen.
	Ports Ports

	// Log receives failures and panics. Nil discards them.
	Log *slog.Logger
}

// An Engine implements calls.Engine.
type Engine struct {
	log       *slog.Logger
	advertise []netip.AddrPort
	udp       *net.UDPConn     // nil if switched off
	tcp       *net.TCPListener // nil if switched off
	port      int
	host      string    // the host of the listening address; "" for all addresses
	ports     portRange // ports for phones

	table    table
	probe    *probe
	identity atomic.Pointer[identity]
	counters counters
	unproven limit.Connections // TCP connections that belong to no section yet
	proof    atomic.Int64      // time for a TCP connection to prove which section it belongs to, in ns
	panicked atomic.Int64      // when a panic outside a leg was last logged; see stamp

	streamsMu sync.Mutex
	streams   map[*stream]struct{} // all TCP connections; nil after the engine closes

	// mu guards the legs, their sections and their links, which rarely change. Forwarding a packet
	// does not lock it.
	mu     sync.Mutex
	legs   map[*leg]struct{}
	closed bool

	done  chan struct{}
	group sync.WaitGroup // all goroutines of the engine
}

var _ calls.Engine = (*Engine)(nil)

// errClosed is returned by an engine that is shutting down.
var errClosed = errors.New("the media engine is closed")

// New opens the ports and starts the engine.
func New(cfg Config) (*Engine, error) {
	e, err := open(cfg)
	if err != nil {
		return nil, err
	}
	e.group.Go(e.runHousekeeping)
	return e, nil
}

// open returns an engine like [New], but without housekeeping.
func open(cfg Config) (*Engine, error) {
	e := &Engine{
		log:      cfg.Log,
		legs:     map[*leg]struct{}{},
		streams:  map[*stream]struct{}{},
		done:     make(chan struct{}),
		ports:    portRange{Ports: cfg.Ports},
		probe:    newProbe(),
		unproven: limit.Connections{Most: maxUnproven, PerNetwork: maxPerNetwork},
	}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	e.table.init()
	e.proof.Store(int64(proofTimeout))
	if err := e.rotateCertificate(time.Now()); err != nil {
		return nil, err
	}
	if err := e.listen(cfg); err != nil {
		return nil, err
	}

	if e.udp != nil {
		udp := e.udp
		e.group.Go(func() { e.readUDP(udp) })
	}
	if e.tcp != nil {
		tcp := e.tcp
		e.group.Go(func() { e.acceptTCP(tcp) })
	}
	return e, nil
}

// Answer implements calls.Engine.
func (e *Engine) Answer(w calls.Watcher, offer string, terms calls.Terms) (calls.Media, string, error) {
	return e.answer(e.newLeg(w, terms), offer)
}

// answer opens the media of a new leg for an offer.
func (e *Engine) answer(l *leg, offer string) (calls.Media, string, error) {
	d, err := l.parse(offer)
	if err != nil {
		return nil, "", err
	}

	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, "", errClosed
	}

	p, err := l.plan(d)
	if err != nil {
		return nil, "", err
	}
	l.apply(p)
	e.legs[l] = struct{}{}
	return l, l.describe(), nil
}

// Offer implements calls.Engine.
func (e *Engine) Offer(w calls.Watcher, other calls.Media, terms calls.Terms) (calls.Media, string, error) {
	from, ok := other.(*leg)
	if !ok || from.engine != e {
		return nil, "", errors.New("offering to a leg: the other leg belongs to another engine")
	}

	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, "", errClosed
	}

	l := e.newLeg(w, terms)
	for _, s := range from.sections {
		if !s.live() {
			continue
		}
		if err := l.addOffered(s); err != nil {
			return nil, "", err
		}
	}
	if len(l.sections) == 0 {
		return nil, "", errors.New("offering to a leg: the other leg has no media")
	}
	e.legs[l] = struct{}{}
	return l, l.describe(), nil
}

// Close implements calls.Engine. It returns once all goroutines have ended.
func (e *Engine) Close() error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil
	}
	e.closed = true
	open := make([]*leg, 0, len(e.legs))
	for l := range e.legs {
		open = append(open, l)
	}
	e.mu.Unlock()

	for _, l := range open {
		l.Close()
	}
	close(e.done)
	err := e.closePorts()
	e.closeStreams()
	e.group.Wait()
	return err
}

// Port returns the number of the UDP and TCP ports.
func (e *Engine) Port() int { return e.port }
