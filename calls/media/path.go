package media

import (
	"net"
	"net/netip"
	"time"

	"github.com/selvage/selvage/calls"
)

// A path is a route on which packets reach a client. It leads from our UDP socket to an address, or
// over a TCP connection that the client opened. It is immutable.
type path struct {
	udp    *net.UDPConn
	tcp    *stream // nil for UDP
	remote netip.AddrPort
	local  netip.AddrPort
	trial  *trial // limits the packets; nil means no limit

	// The client's request for the path (RFC 8445, section 8.1.1), and the time at which the
	// transport switched to the path.
	nominated bool
	priority  uint32
	at        time.Time
}

// write sends a packet. It never waits: if a TCP connection is too slow, the packet is dropped.
func (p *path) write(packet []byte) bool {
	if p.tcp != nil {
		return p.tcp.enqueue(packet)
	}
	if p.trial != nil && !p.trial.allow() {
		return false
	}
	_, err := p.udp.WriteToUDPAddrPort(packet, p.remote)
	return err == nil
}

// send writes a packet, unless it is nil.
func (p *path) send(packet []byte) {
	if packet != nil {
		p.write(packet)
	}
}

// same reports whether two paths have the same destination.
func (p *path) same(q *path) bool { return p.tcp == q.tcp && p.remote == q.remote }

// describe returns the path as a calls.Path.
func (p *path) describe() calls.Path {
	if p == nil {
		return calls.Path{}
	}
	transport := "udp"
	if p.tcp != nil {
		transport = "tcp"
	}
	return calls.Path{Transport: transport, Local: p.local.String(), Remote: p.remote.String()}
}
