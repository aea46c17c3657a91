package media

import (
	"crypto/rand"
	mrand "math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/sdp"
	"github.com/selvage/selvage/internal/problem"
)

// A leg implements calls.Media.
type leg struct {
	engine *Engine
	terms  calls.Terms
	name   string // CNAME of our streams
	stream string

	// Guarded by the engine's mu.
	session  uint64
	version  uint64
	sections []*section          // in the order of our description
	to       map[calls.Kind]*leg // legs whose clients receive this client's media
	from     map[calls.Kind]*leg // legs whose clients send media to this client
	watches  *leg                // in a room, the leg whose video this client sees
	watched  []*leg              // in a room, the legs whose clients see this client

	mixed     bool                  // the audio needs a codec that a mixer can mix; never changes
	voice     atomic.Pointer[voice] // nil if the audio is not mixed
	closed    atomic.Bool
	done      chan struct{} // closed when the leg is closed
	muteAudio atomic.Bool
	muteVideo atomic.Bool
	deaf      atomic.Bool
	tap       atomic.Pointer[calls.Tap]
	reporter  reporter
	digits    digitQueue
	past      totals // totals of closed sections; guarded by the engine's mu
}

var _ calls.Media = (*leg)(nil)

// newLeg returns a leg without sections.
func (e *Engine) newLeg(w calls.Watcher, terms calls.Terms) *leg {
	l := &leg{
		engine: e,
		terms:  terms,
		name:   rand.Text()[:16],
		stream: rand.Text()[:16],
		done:   make(chan struct{}),
		to:     map[calls.Kind]*leg{},
		from:   map[calls.Kind]*leg{},
	}
	l.session = mrand.Uint64() >> 2 // RFC 8829, section 5.2.1: at most 62 bits
	l.reporter.watcher = w
	return l
}

// isPhone reports whether the client is a phone.
func (l *leg) isPhone() bool { return l.terms.Phone.IsValid() }

// parse parses a description from the client.
func (l *leg) parse(text string) (*sdp.Description, error) {
	if l.isPhone() {
		return sdp.ParsePhone(text)
	}
	return sdp.Parse(text)
}

// A step is the effect of an offer on one section.
type step struct {
	offer   *sdp.Section
	answer  sdp.Section
	old     *section   // nil for a new section
	replace bool       // the client uses a new DTLS association
	restart bool       // the client restarts ICE
	port    *phonePort // the port of a phone's new section
}

// plan returns the steps that an offer requires, without applying them. The caller holds the
// engine's mu.
func (l *leg) plan(d *sdp.Description) ([]step, error) {
	if l.isPhone() {
		return l.planPhone(d)
	}
	var steps []step
	accepted := 0
	for i := range d.Sections {
		o := &d.Sections[i]
		s := step{offer: o, old: l.findSection(o.Mid)}
		s.answer = o.Answer(l.preferredCodecs(s.old, o.Kind)...)
		if s.answer.Rejected {
			steps = append(steps, s)
			continue
		}
		if !l.canMix(s.answer) {
			return nil, errNotMixable
		}
		if err := l.checkUsable(o); err != nil {
			return nil, err
		}

		accepted++
		if s.old != nil && (!s.old.live() || string(s.old.kind) != o.Kind) {
			s.old = nil
		}
		if s.old != nil {
			s.replace = s.old.transport.fingerprint() != o.Fingerprint
			s.restart = s.old.ufrag != o.Ufrag
		}
		steps = append(steps, s)
	}

	if accepted == 0 {
		return nil, problem.New(problem.Invalid, "no_media",
			"the offer has no section that can be used: Opus, G.722, PCMU or PCMA for audio, VP8 or H.264 for video")
	}
	return steps, nil
}

// planPhone is like plan, for a phone. It accepts the first audio section. The section's codec and
// encryption never change, because the client on the other side could not follow.
func (l *leg) planPhone(d *sdp.Description) (steps []step, err error) {
	accepted := false
	for i := range d.Sections {
		o := &d.Sections[i]
		s := step{offer: o, old: l.findSection(o.Mid)}
		if s.old != nil && !s.old.live() {
			s.old = nil
		}
		s.answer = o.AnswerPhone(l.suites(s.old), l.preferredCodecs(s.old, o.Kind)...)
		if !l.canMix(s.answer) {
			return nil, errNotMixable
		}
		if accepted || !s.answer.Rejected && !l.canUse(s.old, o, &s.answer) {
			s.answer.Rejected = true
		}

		accepted = accepted || !s.answer.Rejected
		steps = append(steps, s)
	}

	if !accepted {
		return nil, problem.New(problem.Invalid, "no_media",
			"the offer has no audio that can be used: RTP or SRTP with Opus, G.722, PCMU or PCMA")
	}

	// The port is opened last, so that no error leaves it open. At most one section is accepted.
	for i := range steps {
		s := &steps[i]
		if s.old != nil || s.answer.Rejected {
			continue
		}
		s.port, err = l.engine.openPhonePort(l.terms)
		if err != nil {
			return nil, err
		}
	}
	return steps, nil
}

// canUse reports whether an accepted section of a phone has the required encryption. If the section
// replaces an old one, it must also have the old section's encryption and codec.
func (l *leg) canUse(old *section, offer, answer *sdp.Section) bool {
	switch secure := answer.IsSecure(); {
	case l.terms.SRTP.Required && !secure:
		return false
	case old == nil:
		return true
	case secure != old.transport.port.secure || old.agreed.Codecs[0].Name != answer.Codecs[0].Name:
		return false
	case secure:
		_, _, ok := chooseKeys(old.keys(), offer)
		return ok
	}
	return true
}

// canMix reports whether a mixer can mix an accepted section. If the leg is not for a mixer, it
// returns true.
func (l *leg) canMix(s sdp.Section) bool {
	isMixed := l.mixed && s.Kind == sdp.Audio && !s.Rejected
	return !isMixed || slices.Contains(mixable, s.Codecs[0].Name)
}

// checkUsable returns an error unless a client's section has everything that a transport requires.
func (l *leg) checkUsable(s *sdp.Section) error {
	_, isKnownHash := hashes[s.Fingerprint.Hash]
	switch {
	case l.isPhone():
		return l.checkKeys(s)
	case s.Ufrag == "" || s.Password == "":
		return problem.New(problem.Invalid, "invalid_sdp", "section %s has no ICE credentials", s.Mid)
	case !isKnownHash:
		return problem.New(problem.Invalid, "invalid_sdp", "section %s has no fingerprint that can be used", s.Mid)
	case s.Setup != "active" && s.Setup != "actpass":
		return problem.New(problem.Invalid, "invalid_sdp", "section %s does not begin the DTLS handshake", s.Mid)
	}
	return nil
}

// preferredCodecs returns the codecs that an answer should prefer. They are the codecs in use or,
// for a new section, those of the linked leg. Otherwise, they are the codecs in the leg's terms.
// The caller holds the engine's mu.
func (l *leg) preferredCodecs(old *section, kind string) (names []string) {
	if to := l.to[calls.Kind(kind)]; old == nil && to != nil {
		old = to.liveSection(calls.Kind(kind), 0)
	}
	if old == nil || !old.live() {
		return l.terms.Codecs
	}
	for _, c := range old.agreed.Codecs {
		names = append(names, c.Name)
	}
	return names
}

// apply replaces the sections with the results of steps. The caller holds the engine's mu.
func (l *leg) apply(steps []step) {
	before := l.sections
	l.sections = nil
	for _, s := range steps {
		l.sections = append(l.sections, l.applyStep(s))
	}

	for _, s := range before {
		if !slices.Contains(l.sections, s) {
			l.closeSection(s)
		}
	}

	l.version++
	if !l.isPhone() { // a phone expects the order of its offer, and the SDK expects audio first
		slices.SortStableFunc(l.sections, func(a, b *section) int { return rank(a) - rank(b) })
	}
	l.rerouteAll()
}

// rank orders audio sections before other sections.
func rank(s *section) int {
	if s.kind == calls.Audio {
		return 0
	}
	return 1
}

// applyStep returns the section that results from a step.
func (l *leg) applyStep(s step) *section {
	if s.answer.Rejected {
		return &section{leg: l, kind: calls.Kind(s.answer.Kind), mid: s.answer.Mid, agreed: s.answer}
	}

	result := s.old
	if result == nil || s.replace {
		result = l.newSection(s.answer, s.port)
	} else {
		result.proposed = nil
		result.setAgreed(s.answer)
		if s.restart {
			result.transport.restart()
		}
	}
	result.ufrag = s.offer.Ufrag
	result.offered = false
	result.transport.setRemote(s.offer)
	return result
}

// addOffered adds a section with the same kind and codecs as s, which belongs to another leg. A
// phone is offered only one section of audio.
func (l *leg) addOffered(s *section) (err error) {
	if l.isPhone() && (s.kind != calls.Audio || len(l.sections) > 0) {
		return nil
	}
	mid := itoa(len(l.sections))
	offer := s.agreed.Offer(mid)
	var port *phonePort
	if l.isPhone() {
		var suites []string
		if l.terms.SRTP.Required {
			suites = sdp.Suites(l.terms.SRTP.Suites)
		}
		offer = s.agreed.OfferPhone(mid, suites)
		port, err = l.engine.openPhonePort(l.terms)
		if err != nil {
			return err
		}
	}

	added := l.newSection(offer, port)
	added.offered = true
	l.sections = append(l.sections, added)
	return nil
}

// closeSection closes a section and adds its counts to the totals of the leg and of the engine.
func (l *leg) closeSection(s *section) {
	if s.live() {
		r := s.measured()
		l.past.count(s, &r)
		l.engine.counters.lost.Add(r.lost())
		if s.transport.hasFailed(time.Now()) {
			l.engine.counters.unconnected.Add(1)
		}
	}
	s.close()
}

// findSection returns the section whose mid is mid, or nil.
func (l *leg) findSection(mid string) *section {
	for _, s := range l.sections {
		if s.mid == mid {
			return s
		}
	}
	return nil
}

// liveSection returns the n-th live section of a kind, counted from 0, or nil.
func (l *leg) liveSection(kind calls.Kind, n int) *section {
	for _, s := range l.sections {
		if s.kind != kind || !s.live() {
			continue
		}
		if n == 0 {
			return s
		}
		n--
	}
	return nil
}

// describe returns the engine's description for the leg. The caller holds the engine's mu.
func (l *leg) describe() string {
	d := sdp.Description{Session: l.session, Version: l.version, Lite: true}
	for _, s := range l.sections {
		d.Sections = append(d.Sections, s.describe())
	}
	if l.isPhone() {
		return d.Phone()
	}
	return d.String()
}
