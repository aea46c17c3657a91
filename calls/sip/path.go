package sip

import (
	"cmp"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strings"

	"github.com/emiago/sipgo/sip"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
)

// path returns the path of our requests.
func (d *dialog) path() flow {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.flow
}

// follow makes our later requests use f, the path of the phone's latest request. A phone that has
// reconnected during the call receives nothing on its former connection.
//
// A phone may send a single long request over a different transport, and a gateway may send requests
// from any of its machines. These requests change the path only if the former path has ended.
func (d *dialog) follow(f flow) {
	d.mu.Lock()
	defer d.mu.Unlock()
	isSameTransport := d.gateway == nil && f.network() == d.flow.network()
	if !isSameTransport && !d.flow.hasEnded() {
		return
	}
	d.flow = f
	switch {
	case f.tcp == nil:
	case d.fromNetwork || d.gateway != nil && d.received == nil: // over TCP, the source is not forged
		f.tcp.keep()
	default:
		outsiders{d.server}.keep(f) // if this fails, the phone registers again, or loses the connection
	}
}

// reconnect makes the dialogs of a phone use f, the TCP connection over which the phone has just
// registered. It changes the dialogs whose connection has been closed, and those whose connection is
// in former. former contains the connections of the bindings that the phone has renewed.
func (s allDialogs) reconnect(c fabric.SIPCredential, f flow, contacts []contact, former []string) {
	owner := clientOf(c, calls.Socket{}).Token
	s.mu.Lock()
	dialogs := slices.Collect(maps.Values(s.dialogs))
	s.mu.Unlock()
	for _, d := range dialogs {
		token := d.client.Token
		if token.ID == owner.ID && token.ProjectID == owner.ProjectID {
			d.reconnect(f, contacts, former)
		}
	}
}

// reconnect makes the dialog use f if the phone that has registered over f is the dialog's phone.
// Several phones may share credentials and the address of their network. Their contacts differ.
func (d *dialog) reconnect(f flow, contacts []contact, former []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.gateway != nil || d.flow.tcp == nil || d.flow.tcp == f.tcp {
		return
	}
	if d.flow.source() != f.source() || d.flow.isSecure() && !f.isSecure() {
		return
	}
	isOwn := func(c contact) bool {
		isSameHost := strings.EqualFold(c.address.Host, d.remote.Host)
		return isSameHost && c.address.User == d.remote.User
	}
	isFormer := slices.Contains(former, d.flow.tcp.id)
	hasMoved := d.flow.hasEnded() && slices.ContainsFunc(contacts, isOwn)
	if isFormer || hasMoved {
		d.flow = f
	}
}

// responsePath returns the path of the responses to a request that has the top Via header v and arrived
// over f. Some phones and gateways send UDP from one port and listen on another. They do not request
// responses to the source port (RFC 3581), and expect them at the port in v (RFC 3261, section 18.2.2).
// Behind NAT, the address in v differs from the source, and the port in v is not valid.
func responsePath(v *sip.ViaHeader, f flow) flow {
	if f.udp == nil || v.Params.Has("rport") || v.Port < 0 || v.Port > math.MaxUint16 {
		return f
	}
	host, err := netip.ParseAddr(v.Host)
	if err != nil || host.Unmap() != f.source() {
		return f
	}
	f.sentFrom = f.remote
	f.remote = netip.AddrPortFrom(f.source(), cmp.Or(uint16(v.Port), defaultPort))
	return f
}
