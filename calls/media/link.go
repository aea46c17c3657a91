package media

import (
	"time"

	"github.com/selvage/selvage/calls"
)

// Link implements calls.Media.
func (l *leg) Link(kind calls.Kind, to calls.Media) {
	target, _ := to.(*leg) // nil if to is nil, or if to is a leg of another engine

	l.engine.mu.Lock()
	defer l.engine.mu.Unlock()
	if l.closed.Load() || target != nil && (target.closed.Load() || target.engine != l.engine) {
		return
	}
	l.link(kind, target)
}

// link sets which leg receives the client's media of one kind. The caller holds the engine's mu.
func (l *leg) link(kind calls.Kind, to *leg) {
	if old := l.to[kind]; old != nil {
		delete(old.from, kind)
	}
	delete(l.to, kind)
	if to != nil {
		if other := to.from[kind]; other != nil {
			other.link(kind, nil)
		}
		l.to[kind], to.from[kind] = to, l
	}
	l.reroute()
}

// rerouteAll computes the routes to and from the leg. The caller holds the engine's mu.
func (l *leg) rerouteAll() {
	l.reroute()
	for _, f := range l.from {
		f.reroute()
	}
	if l.watches != nil {
		l.watches.reroute()
	}
	if v := l.voice.Load(); v != nil {
		v.reroute()
	}
}

// reroute computes where each section sends its packets: to the section with the same kind and
// position in the linked leg. The caller holds the engine's mu.
func (l *leg) reroute() {
	counts := map[calls.Kind]int{}
	for _, s := range l.sections {
		if !s.live() {
			s.setRoute(nil)
			s.setFan(nil)
			continue
		}
		var to *section
		if linked := l.to[s.kind]; linked != nil {
			to = linked.liveSection(s.kind, counts[s.kind])
		}
		if s.kind == calls.Video {
			s.setFan(l.fan(s, counts[s.kind]))
		}
		counts[s.kind]++
		s.setRoute(s.routeTo(to))
	}
}

// setRoute changes where the section's packets go.
func (s *section) setRoute(r *route) {
	old := s.route.Swap(r)
	if old != nil && (r == nil || r.to != old.to) {
		old.to.out.endEpoch(s)
	}
	if r != nil && (old == nil || r.to != old.to) && s.kind == calls.Video {
		s.askKeyframe(time.Now())
	}
}
