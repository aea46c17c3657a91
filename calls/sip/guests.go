package sip

import (
	"time"

	"github.com/emiago/sipgo/sip"
)

// admitGateway is like admitOutsider, for a gateway. Package calls limits the calls from gateways. A
// gateway above its limits gets an answer immediately, so that its requests do not use up the
// transactions.
func (s outsiders) admitGateway(c caller, r *sip.Request, f flow) bool {
	if !s.proveGateway(c, f) || s.calls.CheckLimits(c.client) != nil {
		s.refuse(r, f)
		return false
	}
	return true
}

// proveGateway records that a gateway was identified by its address. It returns false if the gateway's
// network is so large that anyone may be in it, and strangers hold too many connections.
func (s outsiders) proveGateway(c caller, f flow) bool {
	switch {
	case f.udp != nil:
		s.rates.claim(networkOf(f.source()), time.Now())
		return true
	case c.fromNetwork:
		s.prove(f)
		return true
	}
	return s.keep(f)
}

// refuse answers an INVITE that exceeds a limit.
func (s outsiders) refuse(r *sip.Request, f flow) {
	s.counters.limited.Add(1)
	s.reply(r, f, 503, "Service Unavailable", sip.NewHeader("Retry-After", "5"))
}

// keep keeps the connection of a client that takes part in a call, but may not have authenticated. It
// returns false if clients that have not authenticated hold too many connections, because these would
// keep phones out.
func (s outsiders) keep(f flow) bool {
	if f.tcp.kept.Load() {
		return true
	}
	from := f.source()
	if !s.guests.Add(from) {
		return false
	}
	if !f.tcp.guest.CompareAndSwap(false, true) { // another request has counted the connection
		s.guests.Remove(from)
		return true
	}
	f.tcp.keep()
	if f.tcp.isClosed() || f.tcp.proven.Load() {
		s.forgetGuest(f)
	}
	return true
}

// forgetGuest stops counting a connection that has ended or authenticated, if keep has counted it.
func (s outsiders) forgetGuest(f flow) {
	if f.tcp.guest.CompareAndSwap(true, false) {
		s.guests.Remove(f.source())
	}
}
