package media

import (
	"errors"
	"net"
	"net/netip"
	"time"

	"github.com/pion/rtp"
	"github.com/pion/stun/v4"
)

// maxPacket is the size of the largest packet that the engine reads. Browsers send at most 1,200
// bytes of RTP.
const maxPacket = 2048

// A worker holds what one goroutine needs to handle packets without allocating memory.
type worker struct {
	engine    *Engine
	raw       [maxPacket]byte
	plain     [maxPacket]byte
	sealed    [maxPacket]byte
	copied    [maxPacket]byte // a copy for one of several clients
	header    rtp.Header
	decrypted bool // the current packet was RTP with the right key
	request   stun.Message
	response  stun.Message
	from      path // path of the current packet
}

func (e *Engine) newWorker() *worker { return &worker{engine: e} }

// readUDP handles the packets of a UDP socket until it is closed.
func (e *Engine) readUDP(udp *net.UDPConn) {
	w := e.newWorker()
	w.from.udp = udp
	for {
		n, remote, err := udp.ReadFromUDPAddrPort(w.raw[:])
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil || n == len(w.raw) {
			continue // an ICMP error for an earlier packet, or a truncated packet
		}
		remote = netip.AddrPortFrom(remote.Addr().Unmap(), remote.Port())
		w.receiveDatagram(w.raw[:n], remote, time.Now())
	}
}

// receiveDatagram handles one UDP packet.
func (w *worker) receiveDatagram(b []byte, remote netip.AddrPort, now time.Time) {
	if isSTUN(b) {
		w.from.remote, w.from.local = remote, w.engine.advertisedFor(remote)
		w.receiveSTUN(b, &w.from, now)
		return
	}
	if t := w.engine.table.findByAddress(remote); t != nil {
		w.dispatch(t, b, now)
		return
	}
	w.engine.counters.unknown.Add(1)
}

// dispatch handles a packet from a client whose address has been verified, according to its first
// byte (RFC 7983, section 7).
func (w *worker) dispatch(t *transport, b []byte, now time.Time) {
	defer func() { w.engine.handlePanic(t.owner(), recover()) }()
	switch {
	case len(b) < 12:
	case b[0] >= 20 && b[0] <= 63 && t.port == nil:
		t.receiveDTLS(b, now)
	case b[0] < 128 || b[0] > 191:
	case isRTCP(b):
		w.receiveRTCP(t, b, now)
	default:
		w.receiveRTP(t, b, now)
	}
}

// advertisedFor returns the advertised address to report for a client's address.
func (e *Engine) advertisedFor(remote netip.AddrPort) netip.AddrPort {
	for _, a := range e.advertise {
		if a.Addr().Is4() == remote.Addr().Is4() {
			return a
		}
	}
	return e.advertise[0]
}
