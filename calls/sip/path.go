package sip

import (
	"maps"
	"slices"
	"strings"

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
// from any of its machines. Their requests change the path only if it has ended.
func (d *dialog) follow(f flow) {
	d.mu.Lock()
	defer d.mu.Unlock()
	isSameTransport := d.gateway == nil && f.network() == d.flow.network()
	if !isSameTransport && !d.flow.hasEnded() {
		return
	}
	d.flow = f
	if f.tcp != nil {
		f.tcp.keep()
	}
}

// reconnect makes the dialogs of a phone use f, the TCP connection over which the phone has just
// registered. These are the dialogs whose connection is in former, the connections of the renewed
// bindings, and the dialogs whose connection has been closed.
func (s *Server) reconnect(c fabric.SIPCredential, f flow, contacts []contact, former []string) {
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
