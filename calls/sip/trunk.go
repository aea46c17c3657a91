package sip

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
)

// The default ports of SIP (RFC 3261, section 19.1.2).
const (
	defaultPort    = 5060
	defaultTLSPort = 5061
)

// The errors of gateways that cannot be called.
var (
	errEncryption = errors.New("the gateway requires encrypted media, but its transport is not tls")
	errNoUDP      = errors.New("the gateway uses UDP, which this server does not serve; see listen_sip")
	errNoAddress  = errors.New("the gateway has no permitted address that can be reached; see egress.allow")
)

// Trunk finds the address of a gateway. Set it as Trunk in [calls.Config].
func (s *Server) Trunk(ctx context.Context, g fabric.Gateway, number string) (calls.Phone, error) {
	if g.Encrypted && g.Transport != "tls" {
		return calls.Phone{}, errEncryption
	}
	addresses, err := trunks{s}.resolve(ctx, g, 1)
	if err != nil {
		return calls.Phone{}, err
	}
	at := addresses[0]
	user := number
	if user == "" {
		user = g.User
	}
	id := strings.Join([]string{g.ID, at.String(), user}, "/")
	return calls.Phone{
		Codecs: codecNames(g.Codecs),
		Socket: calls.Socket{
			Node:    s.c.Node,
			ID:      id,
			Phone:   at.Addr(),
			Gateway: true,
			SRTP:    srtpOf(g.Encrypted, g.Ciphers),
		},
	}, nil
}

// trunks connects a [Server] to gateways.
type trunks struct{ *Server }

// resolve returns at most limit addresses of a gateway, in the order in which to try them (RFC 3263).
// The last ones are those that have not answered recently. It returns an error if there are no addresses.
func (s trunks) resolve(ctx context.Context, g fabric.Gateway, limit int) ([]netip.AddrPort, error) {
	all, err := s.find(ctx, g, limit)
	isSilent := func(at netip.AddrPort) bool { return s.silent.has(silentKey{g.ID, at}, time.Now()) }
	if err != nil || !slices.ContainsFunc(all, isSilent) {
		return all, err
	}

	all, err = s.find(ctx, g, max(limit, maxTargets))
	if err != nil {
		return nil, err
	}
	var first, last []netip.AddrPort
	for _, at := range all {
		if isSilent(at) {
			last = append(last, at)
		} else {
			first = append(first, at)
		}
	}
	all = append(first, last...)
	return all[:min(len(all), limit)], nil
}

// find is like resolve, but does not consider which addresses have answered. Projects choose the names of their
// gateways. Therefore, find leaves out addresses that MayReach does not permit, such as those that only
// this machine can reach.
func (s trunks) find(ctx context.Context, g fabric.Gateway, limit int) (all []netip.AddrPort, err error) {
	if a, err := netip.ParseAddr(g.Host); err == nil {
		all = s.permitted(g, []netip.Addr{a.Unmap()}, g.Port)
	} else {
		all, err = s.lookUp(ctx, g, limit)
		if err != nil {
			return nil, err
		}
	}
	if len(all) == 0 {
		return nil, errNoAddress
	}
	return all[:min(len(all), limit)], nil
}

// lookUp implements find for a host name.
func (s trunks) lookUp(ctx context.Context, g fabric.Gateway, limit int) (all []netip.AddrPort, err error) {
	hosts := s.hostsOf(ctx, g)
	for _, h := range hosts[:min(len(hosts), max(limit, maxTargets))] {
		if len(all) >= limit {
			break
		}
		addresses, lookup := s.c.Resolver.LookupNetIP(ctx, "ip", h.Target)
		if lookup != nil {
			err = fmt.Errorf("resolving %s: %w", h.Target, lookup)
			continue
		}
		all = append(all, s.permitted(g, addresses, h.Port)...)
	}
	if len(all) > 0 {
		return all, nil
	}
	return nil, err
}

// hostsOf returns the hosts and ports that SRV records name for a gateway, by priority. If the gateway
// has a port or no such records, hostsOf returns the gateway's own host and port.
func (s trunks) hostsOf(ctx context.Context, g fabric.Gateway) []*net.SRV {
	own := []*net.SRV{{Target: g.Host, Port: g.Port}}
	if g.Port != 0 {
		return own
	}
	service, network := "sip", g.Transport
	if g.Transport == "tls" {
		service, network = "sips", "tcp"
	}
	_, records, err := s.c.Resolver.LookupSRV(ctx, service, network, g.Host)
	if err != nil || len(records) == 0 || records[0].Target == "." {
		return own
	}
	return records
}

// permitted returns the addresses that MayReach permits, and with which this machine can exchange
// messages.
func (s trunks) permitted(g fabric.Gateway, addresses []netip.Addr, port uint16) (all []netip.AddrPort) {
	switch {
	case port != 0:
	case g.Transport == "tls":
		port = defaultTLSPort
	default:
		port = defaultPort
	}
	for _, a := range addresses {
		at := netip.AddrPortFrom(a.Unmap(), port)
		if s.c.MayReach(g.Host, at) && s.c.AddressFor(at.Addr()).IsValid() && s.canSend(g, at.Addr()) {
			all = append(all, at)
		}
	}
	return all
}

// canSend reports whether messages to a gateway can be sent to an address. A UDP socket that is bound to
// an IPv4 address cannot send to IPv6 addresses, even if this machine can.
func (s trunks) canSend(g fabric.Gateway, to netip.Addr) bool {
	if g.Transport != "udp" || s.c.UDP == nil {
		return true
	}
	local := s.c.UDP.LocalAddr().(*net.UDPAddr).AddrPort().Addr()
	if local == netip.IPv6Unspecified() {
		return true
	}
	return local.Unmap().Is4() == to.Is4()
}

// dialFor limits how long connecting to a gateway may take.
const dialFor = 5 * time.Second

// flowTo returns the path to a gateway at an address. For TCP and TLS, it opens a connection unless
// one is open.
func (s trunks) flowTo(ctx context.Context, g fabric.Gateway, at netip.AddrPort) (flow, error) {
	if g.Transport == "udp" && s.c.UDP == nil {
		return flow{}, errNoUDP
	}
	if g.Transport == "udp" {
		return flow{udp: s.c.UDP, remote: at}, nil
	}
	key := trunk{at: at, transport: g.Transport, host: g.Host}
	s.mu.Lock()
	t := s.trunks[key]
	s.mu.Unlock()
	if t != nil && !t.isClosed() {
		return flow{tcp: t, remote: at}, nil
	}

	conn, err := s.dial(ctx, g, at)
	if err != nil {
		s.noteSilent(g.ID, flow{remote: at})
		return flow{}, fmt.Errorf("connecting to a gateway: %w", err)
	}
	t = newStream(conn)
	t.keep = func() {}
	t.proven.Store(true)
	t.kept.Store(true)
	added, err := s.addTrunk(t, key)
	if err != nil {
		t.close()
		return flow{}, err
	}
	if added != t {
		t.close()
		return flow{tcp: added, remote: at}, nil
	}
	_ = conn.SetReadDeadline(time.Now().Add(idleFor))
	opened := time.Now()
	go t.write()
	go func() {
		defer registrar(s).lostConnection(t, opened)
		defer s.removeTrunk(t, key)
		defer t.close()
		listener(s).readStream(t, at)
	}()
	return flow{tcp: t, remote: at}, nil
}

// dial opens a connection to a gateway, by TCP or TLS.
func (s trunks) dial(ctx context.Context, g fabric.Gateway, at netip.AddrPort) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialFor)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", at.String())
	if err != nil {
		return nil, err
	}
	if g.Transport != "tls" {
		return conn, nil
	}
	secure := tls.Client(conn, &tls.Config{ServerName: g.Host, RootCAs: s.c.Roots, MinVersion: tls.VersionTLS12})
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close() // the error from the handshake is more useful
		return nil, err
	}
	return secure, nil
}

// A trunk identifies a connection that this server opened to a gateway. Gateways with different
// host names do not share a connection, even at the same address, because a certificate is valid
// for only one of the names.
type trunk struct {
	at              netip.AddrPort
	transport, host string
}

// addTrunk adds a connection to a gateway and returns it. If such a connection was added in the
// meantime, addTrunk returns the earlier connection instead.
func (s trunks) addTrunk(t *stream, key trunk) (*stream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.trunks[key]; other != nil && !other.isClosed() {
		return other, nil
	}
	if s.closed || len(s.trunks) >= maxStreams {
		return nil, net.ErrClosed
	}
	s.trunks[key] = t
	return t, nil
}

func (s trunks) removeTrunk(t *stream, key trunk) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.trunks[key] == t {
		delete(s.trunks, key)
	}
}

// addressOfGateway formats the address of a gateway for logs.
func addressOfGateway(g fabric.Gateway) string {
	if g.Port == 0 {
		return g.Host
	}
	return net.JoinHostPort(g.Host, strconv.Itoa(int(g.Port)))
}
