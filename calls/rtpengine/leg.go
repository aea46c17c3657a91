package rtpengine

import (
	"crypto/rand"
	"net/netip"
	"sync"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/sdp"
	"github.com/selvage/selvage/internal/problem"
)

// A leg implements calls.Media.
type leg struct {
	engine  *Engine
	daemon  *daemon
	watcher calls.Watcher
	terms   calls.Terms
	done    chan struct{} // closed by Close

	// io guards the following fields up to phone, and keeps requests in order.
	io sync.Mutex
	negotiation
	version uint64     // the version number in our descriptions
	tap     *tap       // nil without a recording
	phone   netip.Addr // the phone's address

	// Guarded by the engine's mu.
	to, from map[calls.Kind]*leg
	inner    map[calls.Kind]netip.AddrPort // where rtpengine receives media for the client
	sending  map[calls.Kind]netip.AddrPort // where rtpengine sends the client's media
	muted    map[calls.Kind]bool
	deaf     bool
	proved   bool // the client has proved its address, so media may be sent there
	closed   bool
	quality  calls.Quality
}

// A negotiation is the part of a leg's state that a failed update does not change.
type negotiation struct {
	session     string // rtpengine's call-id
	offered     bool   // we sent the last offer
	accepted    bool   // the client has described its media
	established bool   // rtpengine has the descriptions of both sides
	sections    []*section
}

// A section is one media section of a leg.
type section struct {
	kind   calls.Kind
	client sdp.Section // the client's last description, reduced to what calls use
	ours   sdp.Section // the description that the switch sends to rtpengine
}

// live reports whether the section carries media.
func (s *section) live() bool { return !s.ours.Rejected }

func (e *Engine) newLeg(d *daemon, w calls.Watcher, terms calls.Terms) *leg {
	return &leg{
		engine:      e,
		daemon:      d,
		watcher:     w,
		terms:       terms,
		phone:       terms.Phone,
		done:        make(chan struct{}),
		negotiation: negotiation{session: rand.Text()},
		to:          map[calls.Kind]*leg{},
		from:        map[calls.Kind]*leg{},
		inner:       map[calls.Kind]netip.AddrPort{},
		sending:     map[calls.Kind]netip.AddrPort{},
		muted:       map[calls.Kind]bool{},
		proved:      !terms.Claimed && !terms.Gateway,
	}
}

// isPhone reports whether the client is a phone.
func (l *leg) isPhone() bool { return l.terms.Phone.IsValid() }

// begin opens a session for the client's offer, and returns the answer.
func (l *leg) begin(offer string) (answer string, err error) {
	l.io.Lock()
	defer l.io.Unlock()
	l.sections, err = l.plan(offer, nil)
	if err != nil {
		return "", err
	}
	l.accepted = true
	answer, err = l.exchange()
	if err != nil {
		l.engine.background(func() { l.end(l.session) })
		return "", err
	}
	return answer, l.engine.add(l)
}

// ring opens a session for a client that has not answered yet, and returns the offer for this
// client.
func (l *leg) ring(from *leg) (offer string, err error) {
	l.io.Lock()
	defer l.io.Unlock()
	l.offered = true
	for _, s := range from.agreed() {
		if l.isPhone() && (s.Kind != sdp.Audio || len(l.sections) > 0) {
			continue
		}
		ours := s.Offer(itoa(len(l.sections)))
		ours.Protocol = l.innerProtocol()
		ours.Setup = ""
		if l.isPhone() {
			ours.SetCodecs(phoneEvents(ours.Codecs))
		}
		l.sections = append(l.sections, &section{kind: calls.Kind(s.Kind), ours: ours})
	}

	if len(l.sections) == 0 {
		return "", problem.New(problem.Invalid, "no_media", "the caller has no media that the callee can use")
	}
	l.inheritCodecs(from)
	offer, err = l.exchange()
	if err != nil {
		l.engine.background(func() { l.end(l.session) })
		return "", err
	}
	return offer, l.engine.add(l)
}

// inheritCodecs copies the preferred codecs of another leg, unless this leg already has preferred
// codecs.
func (l *leg) inheritCodecs(from *leg) {
	if len(l.terms.Codecs) == 0 {
		l.terms.Codecs = from.terms.Codecs
	}
}

// agreed returns the live sections with the settings on which both sides have agreed.
func (l *leg) agreed() (live []sdp.Section) {
	l.io.Lock()
	defer l.io.Unlock()
	for _, s := range l.sections {
		if s.live() {
			live = append(live, s.ours)
		}
	}
	return live
}

// MoveTo implements calls.Media.
func (l *leg) MoveTo(phone netip.Addr) {
	l.io.Lock()
	defer l.io.Unlock()
	l.phone = phone
}

// Accept implements calls.Media.
func (l *leg) Accept(answer string) error {
	l.io.Lock()
	defer l.io.Unlock()
	d, err := l.parse(answer)
	if err != nil {
		return err
	}

	if err := l.accept(d); err != nil {
		return err
	}
	l.accepted = true
	if _, err = l.exchange(); err != nil {
		return err
	}
	l.engine.background(l.syncSources)
	return nil
}

// Update implements calls.Media.
func (l *leg) Update(offer string) (answer string, err error) {
	l.io.Lock()
	defer l.io.Unlock()
	if l.isClosed() {
		return "", errClosed
	}
	planned, err := l.plan(offer, l.sections)
	if err != nil {
		return "", err
	}
	before := l.negotiation
	l.negotiation = negotiation{
		session:     before.session,
		accepted:    true,
		established: before.established,
		sections:    planned,
	}
	answer, err = l.exchange()
	if err != nil {
		l.negotiation = before
		return "", err
	}
	l.engine.background(l.syncSources)
	return answer, nil
}

// Renew implements calls.Media. The client gets a new session, because all its transports are new.
func (l *leg) Renew(offer string) (answer string, err error) {
	l.io.Lock()
	defer l.io.Unlock()
	if l.isClosed() {
		return "", errClosed
	}
	planned, err := l.plan(offer, l.sections)
	if err != nil {
		return "", err
	}

	before := l.negotiation
	session := rand.Text()
	l.negotiation = negotiation{session: session, accepted: true, sections: planned}
	answer, err = l.exchange()
	if err != nil {
		l.negotiation = before
		l.engine.background(func() { l.end(session) })
		return "", err
	}

	l.engine.background(func() { l.end(before.session) })
	l.resubscribe()
	l.engine.background(l.syncSources)
	return answer, nil
}

// Kinds implements calls.Media.
func (l *leg) Kinds() (kinds []calls.Kind) {
	for _, s := range l.agreed() {
		kinds = append(kinds, calls.Kind(s.Kind))
	}
	return kinds
}

// Quality implements calls.Media.
func (l *leg) Quality() calls.Quality {
	l.engine.mu.Lock()
	defer l.engine.mu.Unlock()
	return l.quality
}

// Close implements calls.Media.
func (l *leg) Close() {
	e := l.engine
	e.mu.Lock()
	if l.closed {
		e.mu.Unlock()
		return
	}

	l.closed = true
	close(l.done)
	delete(e.legs, l)
	var sources []*leg
	for kind, from := range l.from {
		delete(from.to, kind)
		sources = append(sources, from)
	}
	for kind, to := range l.to {
		delete(to.from, kind)
	}
	clear(l.from)
	clear(l.to)
	e.mu.Unlock()

	e.background(func() {
		for _, from := range sources {
			from.sync()
		}
		l.io.Lock()
		defer l.io.Unlock()
		l.tap.stop()
		l.tap = nil
		l.end(l.session)
	})
}

// isClosed reports whether Close was called. If it returns false to a caller that holds io, the
// session and the tap stay open until the caller releases io.
func (l *leg) isClosed() bool {
	l.engine.mu.Lock()
	defer l.engine.mu.Unlock()
	return l.closed
}

// end ends a session of rtpengine. If this fails, the session ends by itself after its media stops.
func (l *leg) end(session string) {
	_, err := l.daemon.request("delete", dict{"call-id": session, "delete-delay": 0})
	if err != nil && err != unknownSession && err != errDown && err != errClosed {
		l.engine.log.Warn("ending a session of rtpengine", "error", err)
	}
}

// fail closes the leg and notifies its watcher.
func (l *leg) fail(err error) {
	if l.isClosed() {
		return
	}
	l.Close()
	if l.watcher != nil {
		l.watcher.Failed(err)
	}
}

// background runs f in a goroutine that [Engine.Close] waits for.
func (e *Engine) background(f func()) { e.group.Go(f) }
