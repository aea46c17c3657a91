package sip

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
