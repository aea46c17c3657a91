package rtpengine

import (
	"errors"
	"net/netip"
	"slices"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/sdp"
)

// These constants are the intervals between checks of a session, before and after the client's
// first packet.
const (
	lookOften  = 250 * time.Millisecond
	lookRarely = 4 * time.Second
)

// timeout is how long the client may be silent before it counts as lost. Browsers that send no
// audio still send a report about received packets every five seconds.
const timeout = 2 * calls.LostAfter

// errStranger is why the media of a phone ends if rtpengine receives it from an address that is not
// the phone's.
var errStranger = errors.New("a phone's media came from an address that the phone has not proved")

// A presence is the state that the leg's watcher was last notified of.
type presence int

const (
	unconnected presence = iota
	connected
	lost
)

// watch checks the leg's session until the leg is closed.
func (l *leg) watch() {
	state, session := unconnected, ""
	every := lookOften
	for {
		timer := time.NewTimer(every)
		select {
		case <-l.done:
			timer.Stop()
			return
		case <-timer.C:
		}

		l.io.Lock()
		if l.session != session { // the client has new transports
			state = unconnected
			session = l.session
		}
		l.io.Unlock()
		state = l.look(session, state)
		every = lookRarely
		if state == unconnected {
			every = lookOften
		}
	}
}

// look asks rtpengine about a session, notifies the watcher of changes, and returns the new state.
func (l *leg) look(session string, state presence) presence {
	reply, err := l.daemon.request("query", dict{"call-id": session})
	if errors.Is(err, unknownSession) && l.isCurrent(session) {
		l.engine.background(func() { l.fail(errors.New("rtpengine ended the session or was restarted")) })
		return state
	}
	if err != nil {
		return state // Engine.check notices if the daemon is down
	}

	v := l.read(reply)
	if v.received == 0 {
		return l.noteSilence(state)
	}
	if l.isPhone() && v.remote.IsValid() && !l.mayComeFrom(v.remote.Addr()) {
		l.engine.background(func() { l.fail(errStranger) })
		return state
	}
	path := calls.Path{Transport: "udp", Local: v.local.String(), Remote: v.remote.String()}
	l.note(v, path)

	silent := time.Since(v.last) > timeout && !l.isHeld()
	switch {
	case silent && state == connected:
		l.watcher.Lost()
		return lost
	case !silent && state != connected:
		l.prove()
		l.watcher.Connected(path)
		return connected
	}
	return state
}

// noteSilence notifies the watcher of changes of a client that has never sent anything. A phone that only
// receives may never send, for example a loudspeaker. It counts as connected.
func (l *leg) noteSilence(state presence) presence {
	listens := l.onlyReceives()
	switch {
	case listens && state != connected:
		l.watcher.Connected(calls.Path{Transport: "udp"})
		return connected
	case !listens && state == connected:
		l.watcher.Lost()
		return unconnected
	}
	return state
}

// onlyReceives reports whether the client is a phone at a proved address that does not send.
func (l *leg) onlyReceives() bool {
	l.io.Lock()
	defer l.io.Unlock()
	sends := func(s *section) bool { return s.live() && s.client.Direction.Sends() }
	if !l.isPhone() || !l.accepted || slices.ContainsFunc(l.sections, sends) {
		return false
	}
	l.engine.mu.Lock()
	defer l.engine.mu.Unlock()
	return l.proved
}

// isHeld reports whether the client is a phone on hold. Most phones send nothing while on hold, so
// they do not count as lost.
func (l *leg) isHeld() bool {
	l.io.Lock()
	defer l.io.Unlock()
	talks := func(s *section) bool { return s.live() && s.client.Direction == sdp.SendReceive }
	return l.isPhone() && !slices.ContainsFunc(l.sections, talks)
}

// isCurrent reports whether session is still the session of an open leg.
func (l *leg) isCurrent(session string) bool {
	l.io.Lock()
	defer l.io.Unlock()
	l.engine.mu.Lock()
	defer l.engine.mu.Unlock()
	return !l.closed && l.session == session
}

// prove permits media to the client, because media has arrived from its address.
func (l *leg) prove() {
	l.engine.mu.Lock()
	proved := l.proved
	l.proved = true
	l.engine.mu.Unlock()
	if !proved {
		l.syncSources()
	}
}

// mayComeFrom reports whether a phone's media may come from an address.
func (l *leg) mayComeFrom(a netip.Addr) bool {
	l.io.Lock()
	defer l.io.Unlock()
	for _, s := range l.sections {
		if s.client.Address == a {
			return true
		}
	}
	return a == l.phone
}

// A view is what rtpengine reports about a client's media.
type view struct {
	received, sent int
	last           time.Time // time of the newest packet
	local, remote  netip.AddrPort
}

// read reads the reply to a query.
func (l *leg) read(reply dict) (v view) {
	for _, media := range reply.at("tags", clientTag).dicts("medias") {
		streams := media.dicts("streams")
		if len(streams) == 0 {
			continue
		}
		s := streams[0]
		packets := s.at("stats").number("packets")
		v.received += packets
		if at := time.Unix(int64(s.number("last packet"))+1, 0); packets > 0 && at.After(v.last) {
			v.last = at
			v.local = endpoint(s.text("local address"), s.number("local port"))
			v.remote = endpoint(s.at("endpoint").text("address"), s.at("endpoint").number("port"))
		}
	}

	for _, media := range reply.at("tags", switchTag).dicts("medias") {
		for _, s := range media.dicts("streams") {
			v.sent += s.at("stats").number("packets")
		}
	}
	return v
}

// endpoint returns an address and port, or the zero value if host is not an IP address.
func endpoint(host string, port int) netip.AddrPort {
	a, err := netip.ParseAddr(host)
	if err != nil {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(a.Unmap(), uint16(port))
}

// note stores measurements.
func (l *leg) note(v view, path calls.Path) {
	l.engine.mu.Lock()
	defer l.engine.mu.Unlock()
	l.quality.Received = uint64(v.received)
	l.quality.Sent = uint64(v.sent)
	l.quality.Path = path
}
