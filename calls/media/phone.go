package media

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/selvage/selvage/calls"
)

// Phones use RTP, or SRTP with keys in their descriptions, without ICE. If a phone is behind NAT,
// the source of its packets is unknown until the first packet arrives. Therefore, the engine cannot
// tell the packets of phones apart by their source, and each section of a phone has its own UDP
// port. The engine accepts packets only from the address that the phone proved when it
// authenticated, and sends media only there. A description determines only the port, and only until
// the first packet arrives (symmetric RTP, RFC 4961). A description from a gateway also determines
// the address, on trial.

// relatch is how long a phone must be silent at its port before it may use a different port.
const relatch = 2 * time.Second

// A phonePort is the UDP port of a phone's section.
type phonePort struct {
	conn    *net.UDPConn
	local   atomic.Pointer[netip.AddrPort] // the local address, as in our description
	proved  netip.Addr                     // the address that the phone has proved
	gateway bool                           // see calls.Terms
	secure  bool                           // the phone uses SRTP; fixed
	claimed bool                           // the address may be forged or not the phone's own; see trial
	phone   atomic.Pointer[netip.Addr]     // the only address to exchange packets with
	latched atomic.Bool                    // the phone has sent a packet from the port in use
	trial   trial                          // limits packets to claimed addresses
}

// A trial counts the packets to an address that a gateway has named or a caller over UDP has
// claimed. It ends when media comes from the address. Without trials, anyone with a gateway, or
// anyone who forges the source of a packet, could direct the media of calls to a victim. A few
// packets are sent during a trial, because some gateways learn our address only from them.
type trial struct{ sent atomic.Int64 }

// maxOnTrial is five seconds of audio. After this many packets, only one in everyOnTrial packets is
// sent.
const (
	maxOnTrial   = 250
	everyOnTrial = 50
)

// allow counts a packet, and reports whether it may be sent.
func (t *trial) allow() bool {
	n := t.sent.Add(1)
	return n <= maxOnTrial || n%everyOnTrial == 0
}

// openPhonePort opens a port for a phone.
func (e *Engine) openPhonePort(terms calls.Terms) (*phonePort, error) {
	local, err := e.addressFor(terms.Phone)
	if err != nil {
		return nil, err
	}
	conn, err := e.ports.open(e.host)
	if err != nil {
		return nil, fmt.Errorf("opening a port for a phone: %w", err)
	}
	port := uint16(conn.LocalAddr().(*net.UDPAddr).Port)
	p := &phonePort{
		conn:    conn,
		proved:  terms.Phone,
		gateway: terms.Gateway,
		claimed: terms.Gateway || terms.Claimed,
	}
	at := netip.AddrPortFrom(local, port)
	p.local.Store(&at)
	p.phone.Store(&terms.Phone)
	return p, nil
}

// moveTo changes the address of a gateway. local is the address of this machine that the gateway can
// reach from its new address, or the zero address if there is none.
func (p *phonePort) moveTo(gateway, local netip.Addr) {
	p.proved = gateway
	p.phone.Store(&gateway)
	if local.IsValid() {
		at := netip.AddrPortFrom(local, p.local.Load().Port())
		p.local.Store(&at)
	}
}

// remoteFor returns the address to exchange packets with. described is the address in the phone's
// description. A gateway may name a different address, because gateways often send media from a
// different machine. A private address is accepted only from a gateway that is itself at a private
// or loopback address.
func (p *phonePort) remoteFor(described netip.Addr) netip.Addr {
	switch {
	case !p.gateway:
		return p.proved
	case !described.IsGlobalUnicast() && !described.IsLoopback():
		return p.proved
	case described.Is4() != p.proved.Is4():
		return p.proved
	case described.IsLoopback() && !p.proved.IsLoopback():
		return p.proved
	case described.IsPrivate() && !p.proved.IsPrivate() && !p.proved.IsLoopback():
		return p.proved
	}
	return described
}

// AddressFor returns the address of this machine that a phone can reach, or the zero address.
func (e *Engine) AddressFor(phone netip.Addr) netip.Addr {
	a, _ := e.addressFor(phone) // the zero address after an error
	return a
}

// addressFor returns the address to advertise to a phone. It prefers the local address that routes
// to the phone, if that is advertised. Otherwise, it returns the first advertised address of the
// same family.
func (e *Engine) addressFor(phone netip.Addr) (best netip.Addr, err error) {
	route := routeTo(phone)
	for _, a := range e.advertise {
		switch {
		case a.Addr() == route:
			return route, nil
		case !best.IsValid() && a.Addr().Is4() == phone.Is4():
			best = a.Addr()
		}
	}
	if !best.IsValid() {
		return best, fmt.Errorf("no media address has the address family of %s", phone)
	}
	return best, nil
}

// routeTo returns the local address that this machine uses to reach remote, or the zero address. It
// sends nothing.
func routeTo(remote netip.Addr) netip.Addr {
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(remote, 9)))
	if err != nil {
		return netip.Addr{}
	}
	defer conn.Close()
	return conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap()
}

// newPhoneTransport returns a transport for RTP or, if the section names a suite, for SRTP.
func (e *Engine) newPhoneTransport(s *section, port *phonePort) *transport {
	t := e.newBareTransport(s)
	t.port = port
	if len(s.agreed.Crypto) > 0 {
		t.makeKeys(s.agreed.Crypto)
	} else {
		t.in.ctx = &plainCipher{}
		s.out.setKeys(t, &plainCipher{})
	}
	e.group.Go(func() { e.readPhone(t) })
	return t
}

// setRemotePort sets the port at which the phone expects media. The port is used until the phone
// sends media. A phone that puts the call on hold with the unspecified address may still send media
// from its former address.
func (t *transport) setRemotePort(port int, described netip.Addr) {
	to := t.port.remoteFor(described)
	if described.IsUnspecified() {
		to = *t.port.phone.Load()
	}
	if port == 0 || t.announced == port && *t.port.phone.Load() == to {
		return
	}
	t.announced = port
	t.port.phone.Store(&to)
	t.port.latched.Store(false)
	p := path{udp: t.port.conn, local: *t.port.local.Load(), remote: netip.AddrPortFrom(to, uint16(port))}
	if t.port.claimed {
		p.trial = &t.port.trial
	}
	t.setPath(&p, time.Now())
}

// readPhone handles the packets of a phone until its port is closed.
func (e *Engine) readPhone(t *transport) {
	w := e.newWorker()
	for {
		n, remote, err := t.port.conn.ReadFromUDPAddrPort(w.raw[:])
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil || n == len(w.raw) {
			continue // an ICMP error for an earlier packet, or a truncated packet
		}
		remote = netip.AddrPortFrom(remote.Addr().Unmap(), remote.Port())
		w.receivePhone(t, w.raw[:n], remote, time.Now())
	}
}

// receivePhone handles a packet that arrives at a phone's port. The first RTP packet sets the port
// to which media is sent. If the phone uses SRTP, only a packet with the phone's key sets the port.
func (w *worker) receivePhone(t *transport, b []byte, remote netip.AddrPort, now time.Time) {
	if remote.Addr() != *t.port.phone.Load() || len(b) < 12 || b[0]>>6 != 2 {
		w.engine.counters.unknown.Add(1)
		return
	}

	current, last := t.path.Load(), t.lastHeard.Load()
	switch {
	case t.port.latched.Load() && current.remote == remote:
		if !t.port.secure {
			t.lastHeard.Store(stamp(now))
		}
		w.dispatch(t, b, now)
	case isRTCP(b), t.port.latched.Load() && stamp(now)-last < int64(relatch):
		w.engine.counters.unknown.Add(1)
	case t.port.secure:
		w.decrypted = false
		w.dispatch(t, b, now)
		if w.decrypted {
			t.latch(remote, now)
		}
	default:
		t.latch(remote, now)
		w.dispatch(t, b, now)
	}
}

// latch makes the engine send the phone's media to the address of a packet.
func (t *transport) latch(remote netip.AddrPort, now time.Time) {
	t.lastHeard.Store(stamp(now))
	t.setPath(&path{udp: t.port.conn, local: *t.port.local.Load(), remote: remote}, now)
	if !t.port.latched.Swap(true) && !t.up.Swap(true) {
		t.section.connected(t)
	}
}

// isRTCP reports whether a packet is RTCP, on a port that also receives RTP (RFC 5761, section 4).
func isRTCP(b []byte) bool { return b[1] >= 192 && b[1] <= 223 }

// keepHeld counts a phone on hold as present, because most phones send nothing while on hold. A phone
// that only receives may never send, for example a loudspeaker. It counts as connected, unless it is on
// trial.
func (t *transport) keepHeld(now time.Time) {
	onlyReceives := !t.section.formats.Load().accepts
	if !onlyReceives && t.section.sends() {
		return
	}
	t.lastHeard.Store(stamp(now))
	if p := t.path.Load(); onlyReceives && p != nil && p.trial == nil {
		t.owner().reportConnected(p)
	}
}
