package media

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"github.com/selvage/selvage/calls/sdp"
)

// socketBuffer is the size of each UDP socket buffer. It holds about half a second of the traffic
// that one busy CPU core handles.
const socketBuffer = 4 << 20

// tries is how many times New looks for a port that is free for both UDP and TCP.
const tries = 20

// listen opens the ports and sets the advertised addresses.
func (e *Engine) listen(cfg Config) error {
	if cfg.NoUDP && cfg.NoTCP {
		return errors.New("listening for media: both UDP and TCP are switched off")
	}
	host, port, err := net.SplitHostPort(cfg.Listen)
	if cfg.Listen == "" {
		port, err = "0", nil
	}
	if err != nil {
		return fmt.Errorf("listening for media: %w", err)
	}

	e.host = host
	for range tries {
		err = e.open(net.JoinHostPort(host, port), cfg)
		if err == nil || port != "0" {
			break
		}
	}

	if err != nil {
		return fmt.Errorf("listening for media: %w", err)
	}
	e.advertise, err = e.resolveAdvertised(cfg.Advertise)
	if err != nil {
		return errors.Join(err, e.closePorts())
	}
	return nil
}

// open opens a UDP and a TCP socket at address. If the port is 0, TCP uses the port that UDP got.
func (e *Engine) open(address string, cfg Config) error {
	if !cfg.NoUDP {
		c, err := net.ListenPacket("udp", address)
		if err != nil {
			return err
		}
		e.udp = c.(*net.UDPConn)
		e.port = e.udp.LocalAddr().(*net.UDPAddr).Port

		// The kernel may grant less, or refuse. In either case, only bursts suffer.
		_ = e.udp.SetReadBuffer(socketBuffer)
		_ = e.udp.SetWriteBuffer(socketBuffer)

		host, _, _ := net.SplitHostPort(address)
		address = net.JoinHostPort(host, strconv.Itoa(e.port))
	}
	if cfg.NoTCP {
		return nil
	}

	l, err := net.Listen("tcp", address)
	if err != nil {
		return errors.Join(err, e.closePorts())
	}
	e.tcp = l.(*net.TCPListener)
	e.port = e.tcp.Addr().(*net.TCPAddr).Port
	return nil
}

// closePorts closes the sockets, which makes the goroutines that read from them return.
func (e *Engine) closePorts() error {
	var errs []error
	if e.udp != nil {
		errs = append(errs, e.udp.Close())
	}
	if e.tcp != nil {
		errs = append(errs, e.tcp.Close())
	}
	e.udp, e.tcp = nil, nil
	return errors.Join(errs...)
}

// resolveAdvertised returns the advertised addresses with their ports.
func (e *Engine) resolveAdvertised(configured []netip.AddrPort) ([]netip.AddrPort, error) {
	if len(configured) == 0 {
		local, err := e.localAddresses()
		if err != nil {
			return nil, err
		}
		configured = local
	}

	resolved := make([]netip.AddrPort, 0, len(configured))
	for _, a := range configured {
		port := a.Port()
		if port == 0 {
			port = uint16(e.port)
		}
		resolved = append(resolved, netip.AddrPortFrom(a.Addr().Unmap(), port))
	}
	return resolved, nil
}

// localAddresses returns the address of the sockets. If this address is unspecified, it returns the
// addresses of this machine. It returns a loopback address only if the machine has no others.
func (e *Engine) localAddresses() (global []netip.AddrPort, err error) {
	var bound net.Addr
	if e.udp != nil {
		bound = e.udp.LocalAddr()
	} else {
		bound = e.tcp.Addr()
	}
	if a, err := netip.ParseAddrPort(bound.String()); err == nil && !a.Addr().IsUnspecified() {
		return []netip.AddrPort{a}, nil
	}

	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("listing the machine's addresses: %w", err)
	}
	for _, a := range addresses {
		prefix, err := netip.ParsePrefix(a.String())
		if err == nil && prefix.Addr().IsGlobalUnicast() {
			global = append(global, netip.AddrPortFrom(prefix.Addr(), 0))
		}
	}
	if len(global) == 0 {
		global = append(global, netip.MustParseAddrPort("127.0.0.1:0"))
	}
	return global, nil
}

// UDP returns the addresses of the UDP port: the addresses advertised to clients, and the address
// to use from this machine. Both are empty if UDP is switched off.
func (e *Engine) UDP() (advertised []netip.AddrPort, local netip.AddrPort) {
	if e.udp == nil {
		return nil, netip.AddrPort{}
	}
	local = e.udp.LocalAddr().(*net.UDPAddr).AddrPort()
	if local.Addr().IsUnspecified() {
		local = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), local.Port())
	}
	return e.advertise, netip.AddrPortFrom(local.Addr().Unmap(), local.Port())
}

// candidates returns the host candidates of a section. UDP comes before TCP, and the
// addresses keep their order (RFC 8445, section 5.1.2; RFC 6544, section 4.2).
func (e *Engine) candidates() []sdp.Candidate {
	var all []sdp.Candidate
	add := func(transport string, kind, direction uint32) { // the type and direction preferences
		for i, a := range e.advertise {
			local := direction<<13 | uint32(8191-i)
			all = append(all, sdp.Candidate{
				Foundation: transport + strconv.Itoa(i),
				Transport:  transport,
				Priority:   kind<<24 | local<<8 | 255,
				Address:    a.Addr().String(),
				Port:       int(a.Port()),
			})
		}
	}

	if e.udp != nil {
		add("udp", 126, 7)
	}
	if e.tcp != nil {
		add("tcp", 90, 2)
	}
	return all
}
