package turn

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/pion/turn/v5"
	"golang.org/x/time/rate"
)

// These constants limit sending through one allocation, in bytes. They permit as much video as the
// media port accepts, and some audio.
const (
	bytesPerSecond = 300_000
	burst          = 2 * bytesPerSecond
)

// relays opens the UDP sockets of allocations.
type relays struct{ *Server }

var _ turn.RelayAddressGenerator = relays{}

// Validate implements [turn.RelayAddressGenerator].
func (relays) Validate() error { return nil }

// AllocatePacketConn implements [turn.RelayAddressGenerator]. The relayed address for the client
// has the media address's IP, because the socket's own IP may be private.
func (r relays) AllocatePacketConn(c turn.AllocateListenerConfig) (net.PacketConn, net.Addr, error) {
	is6 := c.Network == "udp6"
	own := slices.IndexFunc(r.config.Own, func(a netip.AddrPort) bool { return a.Addr().Is6() == is6 })
	if own < 0 {
		return nil, nil, errors.New("this node has no media address of that family")
	}

	socket, err := net.ListenUDP("udp", nil)
	if err != nil {
		return nil, nil, err
	}

	port := socket.LocalAddr().(*net.UDPAddr).AddrPort().Port()
	shown := net.UDPAddrFromAddrPort(netip.AddrPortFrom(r.config.Own[own].Addr(), port))
	return &relay{
		UDPConn: socket,
		server:  r.Server,
		own:     r.config.Own[own],
		sent:    rate.NewLimiter(bytesPerSecond, burst),
	}, shown, nil
}

var errNoTCP = errors.New("media is relayed over UDP only")

// AllocateListener implements [turn.RelayAddressGenerator]. TCP allocations (RFC 6062) are not
// supported.
func (relays) AllocateListener(turn.AllocateListenerConfig) (net.Listener, net.Addr, error) {
	return nil, nil, errNoTCP
}

// AllocateConn implements [turn.RelayAddressGenerator].
func (relays) AllocateConn(turn.AllocateConnConfig) (net.Conn, error) { return nil, errNoTCP }

// A relay is the UDP socket of an allocation. It exchanges packets only with media ports.
type relay struct {
	*net.UDPConn
	server *Server
	own    netip.AddrPort // the media address of this node
	sent   *rate.Limiter
}

// WriteTo sends a packet from the client. It drops packets that exceed the rate, or whose
// destination is not a media port.
func (r *relay) WriteTo(p []byte, to net.Addr) (int, error) {
	a := addressOf(to)
	switch {
	case a == r.own:
		a = r.server.config.Local
	case !slices.Contains(r.server.peers(), a):
		return len(p), nil
	}
	if !r.sent.AllowN(time.Now(), len(p)) {
		return len(p), nil
	}
	return r.WriteToUDPAddrPort(p, a)
}

// ReadFrom returns the next packet from a media port.
func (r *relay) ReadFrom(p []byte) (int, net.Addr, error) {
	for {
		n, from, err := r.ReadFromUDPAddrPort(p)
		if err != nil {
			return n, nil, err
		}
		from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
		switch {
		case from == r.server.config.Local:
			return n, net.UDPAddrFromAddrPort(r.own), nil
		case slices.Contains(r.server.peers(), from):
			return n, net.UDPAddrFromAddrPort(from), nil
		}
	}
}

// addressOf converts a net.Addr to a netip.AddrPort.
func addressOf(a net.Addr) netip.AddrPort {
	switch a := a.(type) {
	case *net.UDPAddr:
		p := a.AddrPort()
		return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
	case *net.TCPAddr:
		p := a.AddrPort()
		return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
	}
	return netip.AddrPort{}
}
