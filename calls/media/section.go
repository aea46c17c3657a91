package media

import (
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/sdp"
)

// A section is one media section of a leg. It has a transport, the media that the client sends and
// the media that the client receives.
type section struct {
	leg  *leg
	kind calls.Kind
	mid  string

	// Guarded by the engine's mu.
	agreed    sdp.Section // our last description of the section, without the transport
	ufrag     string      // the client's username fragment; a new one restarts ICE
	offered   bool        // we sent an offer, and the client has not answered yet
	proposed  []sdp.Codec // the codecs of our latest offer that the client has answered, or nil
	transport *transport  // nil if the section was rejected or closed

	formats atomic.Pointer[formats]  // formats of the client's media
	route   atomic.Pointer[route]    // where the client's media goes; nil means nowhere
	fan     atomic.Pointer[[]*route] // in a room, where the client's video goes
	source  atomic.Uint32            // SSRC of the client's stream, 0 before its first packet
	highest atomic.Uint32            // extended sequence number of the client's newest packet

	// keyframeAsked is when the client was last asked for a key frame; see stamp. It is 0 if the client
	// may be asked now.
	keyframeAsked atomic.Int64

	receiver receiver // guarded by the transport's in.mu
	requests requests // requests to the client for packets that never arrived here
	out      sender
}

// live reports whether the section carries media. The caller holds the engine's mu.
func (s *section) live() bool { return s.transport != nil }

// A formats describes the media that a client sends. It is immutable.
type formats struct {
	names   [128]string // codecs by payload type; "" for types without agreement
	clock   uint32
	level   uint8 // id of the audio level extension, 0 if there is none
	accepts bool  // we accept media from the client
}

// A route leads from one section to the section of another leg. It is immutable.
type route struct {
	to         *section
	types      [128]int8 // payload types at the destination; -1 for missing codecs
	extensions [16]uint8 // extension ids at the destination; 0 for missing extensions
}

// newSection returns a section with a transport. port is nil for browsers.
func (l *leg) newSection(agreed sdp.Section, port *phonePort) *section {
	s := &section{leg: l, kind: calls.Kind(agreed.Kind), mid: agreed.Mid}
	s.out.init(s)
	s.setAgreed(agreed)
	if port != nil {
		s.transport = l.engine.newPhoneTransport(s, port)
	} else {
		s.transport = l.engine.newTransport(s)
	}
	return s
}

// setAgreed sets the negotiated formats. The caller holds the engine's mu.
func (s *section) setAgreed(agreed sdp.Section) {
	s.agreed = agreed
	f := &formats{level: agreed.Extension(sdp.AudioLevel), accepts: agreed.Direction.Receives()}
	for i, c := range agreed.Codecs {
		f.names[c.Type] = c.Name
		if i == 0 {
			f.clock = uint32(c.Clock)
		}
	}
	// The client sends the payload types of our offer. It receives those of its answer, which may
	// differ (RFC 3264, section 5.1). Some clients also send the types of their answer.
	for _, c := range s.proposed {
		if _, ok := agreed.Named(c.Name); ok {
			f.names[c.Type] = c.Name
		}
	}
	s.formats.Store(f)
	s.out.setFormat(agreed)
}

// routeTo returns the route to a section of another leg, or nil if no media can be sent to it.
func (s *section) routeTo(to *section) *route {
	if to == nil || !to.live() || !to.agreed.Direction.Sends() || !s.agreed.Direction.Receives() {
		return nil
	}

	r := &route{to: to}
	for i := range r.types {
		r.types[i] = -1
	}

	for kind, name := range s.formats.Load().names {
		if c, ok := to.agreed.Named(name); ok {
			r.types[kind] = int8(c.Type)
		}
	}

	for _, e := range s.agreed.Extensions {
		r.extensions[e.ID] = to.agreed.Extension(e.URI)
	}
	return r
}

// describe returns the section for our description. The caller holds the engine's mu.
func (s *section) describe() sdp.Section {
	d := s.agreed
	if !s.live() {
		d.Rejected = true
		return d
	}

	t := s.transport
	if t.port != nil {
		local := t.port.local.Load()
		d.Address, d.Port = local.Addr(), int(local.Port())
		d.Crypto = t.crypto
		return d
	}

	t.mu.Lock()
	d.Ufrag, d.Password = t.ours.ufrag, t.ours.password
	t.mu.Unlock()
	d.Fingerprint = t.identity.fingerprint
	d.Candidates = s.leg.engine.candidates()
	d.SSRC, d.Name = s.out.ssrc, s.leg.name
	d.Stream, d.Track = s.leg.stream, s.out.track
	if s.kind == calls.Video {
		d.Bandwidth = maxBitrate / 1000
	}
	return d
}

// connected is called when the section's transport has its keys.
func (s *section) connected(t *transport) {
	p := t.path.Load()
	if p != nil && p.tcp != nil {
		s.leg.engine.counters.connectedTCP.Add(1)
	} else {
		s.leg.engine.counters.connectedUDP.Add(1)
	}
	s.leg.reportConnected(p)

	// The client has missed all packets that its source has sent so far, so it needs key frames.
	s.leg.engine.mu.Lock()
	defer s.leg.engine.mu.Unlock()
	from := s.leg.from[s.kind]
	if s.kind == calls.Video && s.leg.watches != nil {
		from = s.leg.watches
	}
	if from != nil {
		for _, source := range from.sections {
			source.askKeyframe(time.Now())
		}
	}
}

// sends reports whether the section sends media to the client.
func (s *section) sends() bool {
	s.out.mu.Lock()
	defer s.out.mu.Unlock()
	return s.out.client.format.Direction.Sends()
}

// close closes the section. The caller holds the engine's mu.
func (s *section) close() {
	if !s.live() {
		return
	}
	t := s.transport
	s.transport = nil
	t.close()
	s.out.close()
}

// randomSSRC returns an SSRC that is not 0.
func randomSSRC() uint32 { return rand.Uint32() | 1 }
