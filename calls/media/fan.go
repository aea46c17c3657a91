package media

import (
	"slices"
	"time"

	"github.com/pion/rtcp"

	"github.com/selvage/selvage/calls"
)

// In a room, the video of one client goes to many. A fan is the routes to them.

// Show implements calls.Mixer.
func (m *mixer) Show(from, to calls.Media) {
	viewer, ok := to.(*leg)
	source, _ := from.(*leg) // nil if from is nil
	if !ok || viewer.engine != m.engine || source != nil && source.engine != m.engine {
		return
	}

	m.engine.mu.Lock()
	defer m.engine.mu.Unlock()
	if viewer.closed.Load() || source != nil && source.closed.Load() {
		return
	}
	viewer.watch(source)
}

// SendsVideo implements calls.Mixer.
func (m *mixer) SendsVideo(media calls.Media) bool {
	l, ok := media.(*leg)
	if !ok {
		return false
	}
	m.engine.mu.Lock()
	defer m.engine.mu.Unlock()
	s := l.liveSection(calls.Video, 0)
	return s != nil && s.agreed.Direction.Receives()
}

// watch makes the client see the video of source. If source is nil, it sees no video. The caller
// holds the engine's mu.
func (l *leg) watch(source *leg) {
	old := l.watches
	if old == source {
		return
	}
	l.watches = source
	if old != nil {
		old.watched = slices.DeleteFunc(old.watched, func(o *leg) bool { return o == l })
		old.reroute()
	}
	if source != nil {
		source.watched = append(source.watched, l)
		source.reroute()
	}
}

// unwatch ends all connections of a leg that is being closed. The caller holds the engine's mu.
func (l *leg) unwatch() {
	l.watch(nil)
	for _, viewer := range slices.Clone(l.watched) {
		viewer.watch(nil)
	}
}

// fan returns the routes from video section s, the one with index n, to the clients that see it.
// The caller holds the engine's mu.
func (l *leg) fan(s *section, n int) []*route {
	var all []*route
	for _, viewer := range l.watched {
		if r := s.routeTo(viewer.liveSection(calls.Video, n)); r != nil {
			all = append(all, r)
		}
	}
	return all
}

// setFan sets the legs that receive the section's packets. If a leg is new, it asks the client for
// a key frame.
func (s *section) setFan(fan []*route) {
	var before []*route
	if old := s.fan.Load(); old != nil {
		before = *old
	}
	if len(fan) == 0 {
		s.fan.Store(nil)
	} else {
		s.fan.Store(&fan)
	}

	leads := func(to *section) func(*route) bool { return func(r *route) bool { return r.to == to } }
	for _, r := range before {
		if !slices.ContainsFunc(fan, leads(r.to)) {
			r.to.out.endEpoch(s)
		}
	}
	for _, r := range fan {
		if !slices.ContainsFunc(before, leads(r.to)) {
			s.askKeyframe(time.Now())
			break
		}
	}
}

// forwardAll sends a decrypted packet to all clients that see the section.
func (w *worker) forwardAll(s *section, fan []*route, plain []byte, p packet, now time.Time) {
	f := s.formats.Load()
	ask := false
	for _, r := range fan {
		kind := r.types[p.kind]
		if kind < 0 {
			continue
		}
		b := w.copied[:copy(w.copied[:], plain)]
		rewriteExtensions(b, p, &r.extensions, f.level)
		b[1] = b[1]&0x80 | uint8(kind)
		ask = r.to.out.forward(w, s, b, p, f.names[p.kind], now) || ask
	}
	if ask {
		s.askKeyframe(now)
	}
}

// bitrateFor is how long a client's estimate of its bandwidth counts.
const bitrateFor = 5 * time.Second

// limitBitrate records the bandwidth that a client estimates for the video that it sees. It returns
// the smallest estimate of all clients that see the same video.
func (s *section) limitBitrate(from *section, p *rtcp.ReceiverEstimatedMaximumBitrate, now time.Time) {
	s.out.estimate.Store(&estimate{p.Bitrate, now})
	fan := from.fan.Load()
	if fan == nil {
		return
	}
	for _, r := range *fan {
		if e := r.to.out.estimate.Load(); e != nil && now.Sub(e.at) < bitrateFor {
			p.Bitrate = min(p.Bitrate, e.bitrate)
		}
	}
}

// An estimate is the bandwidth to a client, as the client estimated it.
type estimate struct {
	bitrate float32
	at      time.Time
}
