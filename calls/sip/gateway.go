package sip

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/emiago/sipgo/sip"

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
	return calls.Phone{Codecs: codecNames(g.Codecs), Socket: calls.Socket{Node: s.c.Node, ID: id, Phone: at.Addr(),
		Gateway: true, SRTP: srtpOf(g.Encrypted, g.Ciphers)}}, nil
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
	all, err := s.c.Resolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("resolving %s: %w", host, err)
	}
	return s.permitted(g, all, port)
}

// permitted returns the first address that MayReach permits and that can reach this machine.
func (s trunks) permitted(g fabric.Gateway, all []netip.Addr, port uint16) (netip.AddrPort, error) {
	switch {
	case port != 0:
	case g.Transport == "tls":
		port = defaultTLSPort
	default:
		port = defaultPort
	}
	for _, a := range all {
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

	ctx, cancel := context.WithTimeout(ctx, dialFor)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", at.String())
	if err != nil {
		return flow{}, fmt.Errorf("connecting to a gateway: %w", err)
	}
	if g.Transport == "tls" {
		secure := tls.Client(conn, &tls.Config{ServerName: g.Host, RootCAs: s.c.Roots, MinVersion: tls.VersionTLS12})
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = conn.Close() // the error from the handshake is more useful
			return flow{}, fmt.Errorf("connecting to a gateway: %w", err)
		}
		conn = secure
	}

	t = newStream(conn)
	t.keep = func() {}
	t.proven.Store(true)
	t.kept.Store(true)
	if other, err := s.addTrunk(t, key); err != nil || other != t {
		t.close()
		return flow{tcp: other, remote: at}, err
	}
	_ = conn.SetReadDeadline(time.Now().Add(idleFor))
	go t.write()
	go func() {
		defer s.removeTrunk(t, key)
		defer t.close()
		listener(s).readStream(t, at)
	}()
	return flow{tcp: t, remote: at}, nil
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

// ringGateway sends the invitation e to a gateway.
func (s trunks) ringGateway(to calls.Socket, e calls.Event) {
	id, _, _ := strings.Cut(to.ID, "/")
	d := &dialog{server: s.Server, key: dialogKey{rand.Text() + "@selvage", newTag()},
		leg: e.Leg, node: e.Node, sdp: e.SDP,
		client: calls.Client{Socket: to, Token: fabric.Token{Kind: fabric.Guest, ID: id, KeyID: id,
			ProjectID: e.Project, IssuedAt: time.Now()}}}
	if s.add(d) {
		go func() {
			defer s.recoverPanic()
			if err := d.startAtGateway(to.ID, e); err != nil {
				s.log.Warn("calling through a SIP gateway", "gateway_id", id, "leg_id", e.Leg, "error", err)
				if d.finish() {
					d.hangUp(calls.Fail, calls.UserNotRegistered)
				}
			}
		}()
	}
}

// startAtGateway sends the INVITE, unless the call has ended in the meantime.
func (d *dialog) startAtGateway(socket string, e calls.Event) error {
	s := d.server
	ctx, cancel := context.WithTimeout(context.Background(), handleFor)
	defer cancel()
	id, rest, _ := strings.Cut(socket, "/")
	where, user, _ := strings.Cut(rest, "/")
	at, err := netip.ParseAddrPort(where)
	if err != nil {
		return err // cannot happen: Trunk has formatted the address
	}
	g, err := s.c.Fabric.Gateways.Find(ctx, e.Project, id)
	if err != nil {
		return err
	}
	f, err := trunks{s}.flowTo(ctx, g, at)
	if err == nil && d.client.Socket.SRTP.Required && !f.isSecure() {
		err = errEncryption // the gateway has changed since Trunk
	}
	if err != nil {
		return err
	}

	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over {
		return nil
	}
	d.flow, d.gateway = f, &g
	d.remote = gatewayURI(g, user)
	d.uri = "<" + d.remote.String() + ">"
	d.from = &sip.FromHeader{Address: sip.Uri{Scheme: "sip", User: callerFor(g, e.From), Host: uriHost(g.Host)},
		Params: sip.HeaderParams{{K: "tag", V: d.key.tag}}}
	d.sendInvite(nil)
	return nil
}

// callerFor returns the user in the From header of a call. The header never contains the caller's
// name.
func callerFor(g fabric.Gateway, from calls.Party) string {
	switch {
	case g.CallerID != "":
		return g.CallerID
	case strings.HasPrefix(from.Address, "+"):
		return from.Address
	}
	return userOf(from)
}

// gatewayURI returns the URI of a user at a gateway.
func gatewayURI(g fabric.Gateway, user string) sip.Uri {
	u := sip.Uri{Scheme: "sip", User: user, Host: uriHost(g.Host), Port: int(g.Port)}
	if g.Transport != "udp" {
		u.UriParams = sip.HeaderParams{{K: "transport", V: g.Transport}}
	}
	return u
}

// uriHost formats a host for a URI.
func uriHost(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

// reauthorize repeats the INVITE with the gateway's credentials if the response r requests them. It
// reports whether it repeated the INVITE.
func (d *dialog) reauthorize(r *sip.Response) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.gateway == nil || d.authorized || d.over || r.StatusCode != 401 && r.StatusCode != 407 {
		return false
	}
	h, ok := answerChallenge(r, sip.INVITE, d.remote.String(), d.gateway.Username, d.gateway.Password)
	if !ok {
		return false
	}
	d.authorized = true
	d.sendInvite(h)
	return true
}

// challenges contains the response codes that request credentials. Its values are the headers of
// the challenge and of the answer (RFC 3261, section 22).
var challenges = map[int][2]string{
	401: {"www-authenticate", "Authorization"}, 407: {"proxy-authenticate", "Proxy-Authorization"},
}

// answerChallenge returns the header that answers the best challenge in a response (RFC 7616). ok
// is false if the gateway has no credentials, or if no challenge can be answered.
func answerChallenge(r *sip.Response, method sip.RequestMethod, uri, user, password string) (h sip.Header, ok bool) {
	names := challenges[r.StatusCode]
	best := credentials{}
	for _, header := range r.GetHeaders(names[0]) {
		c, known := parseChallenge(header.Value())
		if known && (best.nonce == "" || c.algorithm == "SHA-256") {
			best = c
		}
	}
	if user == "" || best.nonce == "" || strings.ContainsAny(best.realm+best.nonce+best.opaque, "\r\n\"\\") {
		return nil, false
	}

	sum := algorithms[best.algorithm]
	secret, request := digest(sum, user, best.realm, password), digest(sum, string(method), uri)
	text := fmt.Sprintf(`Digest username="%s", realm="%s", nonce="%s", uri="%s", algorithm=%s`,
		user, best.realm, best.nonce, uri, best.algorithm)
	if best.opaque != "" {
		text += fmt.Sprintf(`, opaque="%s"`, best.opaque)
	}
	if best.qop == "" { // RFC 2069
		text += fmt.Sprintf(`, response="%s"`, digest(sum, secret, best.nonce, request))
	} else {
		cnonce := rand.Text()
		text += fmt.Sprintf(`, qop=auth, nc=00000001, cnonce="%s", response="%s"`, cnonce,
			digest(sum, secret, best.nonce, "00000001", cnonce, "auth", request))
	}
	return sip.NewHeader(names[1], text), true
}

// parseChallenge parses a challenge. ok is false if the server cannot answer this challenge.
func parseChallenge(header string) (c credentials, ok bool) {
	c, ok = parseDigest(header)
	if c.qop != "" {
		ok = ok && hasToken(c.qop, "auth")
		c.qop = "auth"
	}
	return c, ok && c.nonce != "" && algorithms[c.algorithm] != nil
}

// hasToken reports whether a list separated by commas contains a token.
func hasToken(list, token string) bool {
	for t := range strings.SplitSeq(list, ",") {
		if strings.EqualFold(strings.TrimSpace(t), token) {
			return true
		}
	}
	return false
}

// addressOfGateway formats the address of a gateway for logs.
func addressOfGateway(g fabric.Gateway) string {
	if g.Port == 0 {
		return g.Host
	}
	return net.JoinHostPort(g.Host, strconv.Itoa(int(g.Port)))
}
