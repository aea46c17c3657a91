package media

import (
	"slices"
	"time"

	"github.com/pion/rtcp"

	"github.com/selvage/selvage/calls"
)

// In a room, many clients see the video of one client. A fan contains the routes to these clients.

// Show implements calls.Mixer.
func (m *mixer) Show(from calls.Media, to ...calls.Media) {
	source, _ := from.(*leg) // nil if from is nil
	if source != nil && source.engine != m.engine {
		return
	}

	m.engine.mu.Lock()
	defer m.engine.mu.Unlock()
	if source != nil && source.closed.Load() {
		return
	}
	var viewers []*leg
	for _, media := range to {
		if viewer, ok := media.(*leg); ok && viewer.engine == m.engine && !viewer.closed.Load() {
			viewers = append(viewers, viewer)
		}
	}
	watch(viewers, source)
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

// watch makes the clients of viewers see the video of source. If source is nil, they see no video.
// watch changes the routes of each source only once, no matter how many viewers the source has,
// because all legs wait meanwhile. The caller holds the engine's mu.
func watch(viewers []*leg, source *leg) {
	changed := make(map[*leg]bool) // the sources
	for _, l := range viewers {
		if l.watches == source {
			continue
		}
		changed[l.watches], changed[source] = true, true
		l.watches = source
		if source != nil {
			source.watched = append(source.watched, l)
		}
	}

	delete(changed, nil)
	for l := range changed {
		l.watched = slices.DeleteFunc(l.watched, func(o *leg) bool { return o.watches != l })
		l.reroute()
	}
}

// unwatch makes a leg that is being closed see nobody, and be seen by nobody. The caller holds the
// engine's mu.
func (l *leg) unwatch() {
	watch([]*leg{l}, nil)
	watch(slices.Clone(l.watched), nil)
}

// fan returns the routes from the video section s, which has index n, to the clients that see it.
// The caller holds the engine's mu.
func (l *leg) fan(s *section, n int) []*route {
	var routes []*route
	for _, viewer := range l.watched {
		if r := s.routeTo(viewer.liveSection(calls.Video, n)); r != nil {
			routes = append(routes, r)
		}
	}
	return routes
}

// setFan sets the legs that receive the section's packets. If one of them is new, setFan asks the
// section's client for a key frame.
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

	// A large room would need too many comparisons without a map.
	receives := make(map[*section]bool, len(before))
	for _, r := range before {
		receives[r.to] = false
	}

	added := false
	for _, r := range fan {
		_, known := receives[r.to]
		added = added || !known
		receives[r.to] = true
	}

	for _, r := range before {
		if !receives[r.to] {
			r.to.out.endEpoch(s)
		}
	}

	if added {
		s.askKeyframe(time.Now())
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

// bitrateFor is how long a client's estimate of its bandwidth is valid.
const bitrateFor = 5 * time.Second

// minBitrate is the lowest bandwidth, in bits per second, that a client of a room can request from
// a source. A client with less bandwidth loses packets, but does not spoil the video for all others.
const minBitrate = 150_000

// limitBitrate records the bandwidth that a client estimates for the video that it sees. It sets
// p.Bitrate to the smallest estimate of all clients that see the same video, ignoring estimates
// below minBitrate. If no estimate remains, it sets minBitrate.
func (s *section) limitBitrate(from *section, p *rtcp.ReceiverEstimatedMaximumBitrate, now time.Time) {
	s.out.estimate.Store(&estimate{p.Bitrate, now})
	fan := from.fan.Load()
	if fan == nil {
		return
	}

	lowest := float32(maxBitrate)
	usable := false
	for _, r := range *fan {
		e := r.to.out.estimate.Load()
		if e != nil && now.Sub(e.at) < bitrateFor && e.bitrate >= minBitrate {
			lowest, usable = min(lowest, e.bitrate), true
		}
	}

	p.Bitrate = lowest
	if !usable {
		p.Bitrate = minBitrate
	}
}

// An estimate is the bandwidth to a client, as estimated by the client.
type estimate struct {
	bitrate float32
	at      time.Time
}
