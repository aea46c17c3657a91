package media

import (
	"net"
	"net/netip"
	"time"

	"github.com/selvage/selvage/calls"
)

// A path is how packets reach a client: from our UDP socket to an address, or over a TCP
// connection that the client opened. It does not change.
type path struct {
	udp    *net.UDPConn
	tcp    *stream // nil for UDP
	remote netip.AddrPort
	local  netip.AddrPort

	// What the client wants of the path (RFC 8445, section 8.1.1), and since when it is used.
	nominated bool
	priority  uint32
	at        time.Time
}

// write sends a packet. It never waits: what a slow TCP connection cannot take is dropped.
func (p *path) write(packet []byte) bool {
	if p.tcp != nil {
		return p.tcp.send(packet)
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

// same reports whether two paths lead to the same place.
func (p *path) same(q *path) bool { return p.tcp == q.tcp && p.remote == q.remote }

// describe returns the path as package calls names it.
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
