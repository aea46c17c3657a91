package media

import (
	"net/netip"
	"strconv"
	"sync/atomic"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/sdp"
	"github.com/selvage/selvage/internal/problem"
)

// kinds are the kinds of media that the engine carries.
var kinds = []calls.Kind{calls.Audio, calls.Video}

func itoa(n int) string { return strconv.Itoa(n) }

// MoveTo implements calls.Media.
func (l *leg) MoveTo(phone netip.Addr) {
	local := l.engine.AddressFor(phone)
	l.engine.mu.Lock()
	defer l.engine.mu.Unlock()
	l.terms.Phone = phone
	for _, s := range l.sections {
		if s.live() {
			s.transport.port.moveTo(phone, local)
		}
	}
}

// Accept implements calls.Media.
func (l *leg) Accept(answer string) error {
	d, err := l.parse(answer)
	if err != nil {
		return err
	}

	l.engine.mu.Lock()
	defer l.engine.mu.Unlock()
	if l.closed.Load() {
		return nil
	}

	answers := map[string]*sdp.Section{}
	accepted := 0
	for i := range d.Sections {
		a := &d.Sections[i]
		answers[a.Mid] = a
		if a.Rejected {
			continue
		}
		s := l.findSection(a.Mid)
		if s == nil || string(s.kind) != a.Kind {
			return problem.New(problem.Invalid, "invalid_sdp", "section %s was not offered", a.Mid)
		}
		if err := l.checkUsable(a); err != nil {
			return err
		}
		if !s.offered || hasCodec(s.agreed.Accept(a)) {
			accepted++
		}
	}

	if accepted == 0 {
		return problem.New(problem.Invalid, "no_media", "the answer has no section that can be used")
	}

	for _, s := range l.sections {
		l.accept(s, answers[s.mid])
	}
	l.rerouteAll()
	return nil
}

// accept applies a section of the client's answer to the section that we offered. The caller holds
// the engine's mu.
func (l *leg) accept(s *section, a *sdp.Section) {
	if !s.offered || !s.live() {
		return
	}
	if a == nil || a.Rejected {
		l.closeSection(s)
		return
	}

	agreed := s.agreed.Accept(a)
	if !hasCodec(agreed) {
		l.closeSection(s)
		return
	}
	s.offered, s.ufrag = false, a.Ufrag
	s.proposed = s.agreed.Codecs
	s.setAgreed(agreed)
	s.transport.setRemote(a)
}

// hasCodec reports whether a section has a codec. Telephone events come last. They are not a codec.
func hasCodec(s sdp.Section) bool { return len(s.Codecs) > 0 && s.Codecs[0].Name != sdp.Events }

// Update implements calls.Media.
func (l *leg) Update(offer string) (string, error) { return l.applyOffer(offer, false) }

// Renew implements calls.Media.
func (l *leg) Renew(offer string) (string, error) { return l.applyOffer(offer, true) }

// applyOffer handles a later offer. If renew is true, it replaces all sections.
func (l *leg) applyOffer(offer string, renew bool) (string, error) {
	d, err := l.parse(offer)
	if err != nil {
		return "", err
	}

	l.engine.mu.Lock()
	defer l.engine.mu.Unlock()
	if l.closed.Load() {
		return "", errClosed
	}
	before := l.sections
	if renew {
		l.sections = nil
	}
	steps, err := l.plan(d)
	l.sections = before
	if err != nil {
		return "", err
	}

	if renew {
		for i := range steps {
			steps[i].old = nil
		}
		l.reporter.reset()
	}
	l.apply(steps)
	return l.describe(), nil
}

// Mute implements calls.Media.
func (l *leg) Mute(kind calls.Kind, muted bool) {
	if l.muted(kind).Swap(muted) && !muted {
		l.restartEpochs(kind)
	}
}

// muted returns the mute switch for a kind.
func (l *leg) muted(kind calls.Kind) *atomic.Bool {
	if kind == calls.Video {
		return &l.muteVideo
	}
	return &l.muteAudio
}

// restartEpochs begins a new epoch in the streams that carry this leg's media, so that they
// continue without a gap.
func (l *leg) restartEpochs(kind calls.Kind) {
	l.engine.mu.Lock()
	defer l.engine.mu.Unlock()
	for _, s := range l.sections {
		if s.kind != kind {
			continue
		}
		if r := s.route.Load(); r != nil {
			r.to.out.endEpoch(s)
		}
		if fan := s.fan.Load(); fan != nil {
			for _, r := range *fan {
				r.to.out.endEpoch(s)
			}
		}
	}
}

// Deafen implements calls.Media.
func (l *leg) Deafen(deaf bool) {
	if !l.deaf.Swap(deaf) || deaf {
		return
	}
	l.engine.mu.Lock()
	defer l.engine.mu.Unlock()
	for _, s := range l.sections {
		s.out.endEpoch(nil)
	}
}

// Record implements calls.Media.
func (l *leg) Record(t calls.Tap) {
	if t == nil || l.closed.Load() {
		l.tap.Store(nil)
		return
	}
	l.tap.Store(&t)
}

// Kinds implements calls.Media.
func (l *leg) Kinds() (live []calls.Kind) {
	l.engine.mu.Lock()
	defer l.engine.mu.Unlock()
	for _, kind := range kinds {
		if l.liveSection(kind, 0) != nil {
			live = append(live, kind)
		}
	}
	return live
}

// Close implements calls.Media.
func (l *leg) Close() {
	l.engine.mu.Lock()
	defer l.engine.mu.Unlock()
	if l.closed.Swap(true) {
		return
	}

	close(l.done)
	delete(l.engine.legs, l)
	for _, kind := range kinds {
		l.link(kind, nil)
		if from := l.from[kind]; from != nil {
			from.link(kind, nil)
		}
	}
	l.unwatch()
	for _, s := range l.sections {
		l.closeSection(s)
	}
	l.tap.Store(nil)
}
