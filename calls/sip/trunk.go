package sip

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
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
	errNoAddress  = errors.New("the gateway has no permitted address; see egress.allow")
)

// Trunk finds the address of a gateway. Set it as Trunk in [calls.Config].
func (s *Server) Trunk(ctx context.Context, g fabric.Gateway, number string) (calls.Phone, error) {
	if g.Encrypted && g.Transport != "tls" {
		return calls.Phone{}, errEncryption
	}
	at, err := trunks{s}.resolve(ctx, g)
	if err != nil {
		return calls.Phone{}, err
	}
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

// resolve returns the address of a gateway (RFC 3263). Projects choose the names of their gateways.
// Therefore, resolve rejects names that lead to hosts that only this machine can reach.
func (s trunks) resolve(ctx context.Context, g fabric.Gateway) (netip.AddrPort, error) {
	host, port := g.Host, g.Port
	if a, err := netip.ParseAddr(host); err == nil {
		return s.permitted(g, []netip.Addr{a.Unmap()}, port)
	}
	if port == 0 {
		service, network := "sip", g.Transport
		if g.Transport == "tls" {
			service, network = "sips", "tcp"
		}
		_, records, err := s.c.Resolver.LookupSRV(ctx, service, network, host)
		if err == nil && len(records) > 0 && records[0].Target != "." {
			host, port = records[0].Target, records[0].Port
		}
	}
	addresses, err := s.c.Resolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("resolving %s: %w", host, err)
	}
	return s.permitted(g, addresses, port)
}

// permitted returns the first address that MayReach permits and that can reach this machine.
func (s trunks) permitted(g fabric.Gateway, addresses []netip.Addr, port uint16) (netip.AddrPort, error) {
	switch {
	case port != 0:
	case g.Transport == "tls":
		port = defaultTLSPort
	default:
		port = defaultPort
	}
	for _, a := range addresses {
		at := netip.AddrPortFrom(a.Unmap(), port)
		if s.c.MayReach(g.Host, at) && s.c.AddressFor(at.Addr()).IsValid() {
			return at, nil
		}
	}
	return netip.AddrPort{}, errNoAddress
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
	if t != nil {
		return flow{tcp: t, remote: at}, nil
	}

	conn, err := s.dial(ctx, g, at)
	if err != nil {
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
// names do not share a connection even at the same address, because a certificate is valid for only
// one of the names.
type trunk struct {
	at              netip.AddrPort
	transport, host string
}

// addTrunk adds a connection to a gateway and returns it. If such a connection was added in the
// meantime, addTrunk returns the earlier connection instead.
func (s trunks) addTrunk(t *stream, key trunk) (*stream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.trunks[key]; other != nil {
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
