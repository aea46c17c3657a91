package sdp

import (
	"slices"
	"strings"
)

// Names of the codecs that calls use.
const (
	Opus   = "opus"
	G722   = "G722"
	PCMU   = "PCMU"
	PCMA   = "PCMA"
	Events = "telephone-event" // RFC 4733
	VP8    = "VP8"
	H264   = "H264"
)

// preferred lists the codecs for each kind, the best first.
var preferred = map[string][]string{
	Audio: {Opus, G722, PCMU, PCMA},
	Video: {VP8, H264},
}

// Header extensions that calls forward.
const (
	AudioLevel  = "urn:ietf:params:rtp-hdrext:ssrc-audio-level"                // RFC 6464
	SendTime    = "http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time" // for REMB
	Orientation = "urn:3gpp:video-orientation"                                 // 3GPP TS 26.114
)

var extensions = map[string][]string{
	Audio: {AudioLevel},
	Video: {SendTime, Orientation},
}

// feedback lists the RTCP feedback for video that calls forward (RFC 4585, RFC 5104).
var feedback = []string{"goog-remb", "ccm fir", "nack", "nack pli"}

// Answer selects what an offered section can carry: one codec, telephone events for audio, and the
// header extensions that calls forward. It uses the payload types and ids from the offer. Codecs in
// first are preferred. If the codec is Opus and the offer has G.722, the answer also contains
// G.722, which the client receives if the call moves into a room. If no codec is suitable, the
// section is rejected. The caller adds the transport.
func (s *Section) Answer(first ...string) Section {
	a := Section{Kind: s.Kind, Protocol: s.Protocol, Mid: s.Mid, Formats: s.Formats}
	codecs := s.choose(first)
	if s.Rejected || len(codecs) == 0 || !strings.HasSuffix(s.Protocol, "TLS/RTP/SAVPF") {
		a.Rejected, a.Direction = true, Inactive
		return a
	}

	a.Direction, a.Reduced = s.Direction.Reverse(), s.Reduced
	a.Setup = "passive"
	a.SetCodecs(codecs)
	for _, uri := range extensions[s.Kind] {
		if id := s.Extension(uri); id != 0 {
			a.Extensions = append(a.Extensions, Extension{id, uri})
		}
	}
	return a
}

// Offer returns a section that offers what s has agreed on, with the same payload types and ids.
func (s *Section) Offer(mid string) Section {
	o := Section{
		Kind:       s.Kind,
		Protocol:   "UDP/TLS/RTP/SAVPF",
		Mid:        mid,
		Reduced:    true,
		Setup:      "actpass",
		Extensions: slices.Clone(s.Extensions),
	}
	o.SetCodecs(slices.Clone(s.Codecs))

	// What one client sends, the other client receives. An inactive section may become active
	// later, and the server cannot send another offer.
	o.Direction = s.Direction.Reverse()
	if o.Direction == Inactive {
		o.Direction = SendReceive
	}
	return o
}

// SetCodecs sets the codecs, and the formats in the m= line.
func (s *Section) SetCodecs(codecs []Codec) {
	s.Codecs = codecs
	types := make([]string, len(codecs))
	for i, c := range codecs {
		types[i] = itoa(int(c.Type))
	}
	s.Formats = strings.Join(types, " ")
}

// choose returns the best codec of the section, G.722 after Opus, and telephone events. It omits
// those that the section does not have.
func (s *Section) choose(first []string) []Codec {
	known := preferred[s.Kind]
	for _, name := range slices.Concat(first, known) {
		if !slices.Contains(known, name) {
			continue
		}
		for _, c := range s.Codecs {
			if !c.is(name) || !c.usable() {
				continue
			}
			codecs := []Codec{c.agreed(name)}
			if room, ok := s.roomCodec(name); ok {
				codecs = append(codecs, room)
			}
			if events, ok := s.events(c.Clock); ok {
				codecs = append(codecs, events)
			}
			return codecs
		}
	}
	return nil
}

// roomCodec returns the codec in which a client that sends Opus can hear a room.
func (s *Section) roomCodec(best string) (room Codec, ok bool) {
	if best != Opus {
		return Codec{}, false
	}
	for _, c := range s.Codecs {
		if c.is(G722) && c.usable() {
			return c.agreed(G722), true
		}
	}
	return Codec{}, false
}

// usable reports whether a codec with a known name has parameters that all browsers support.
func (c Codec) usable() bool {
	switch {
	case c.is(Opus):
		return c.Clock == 48000
	case c.is(VP8):
		return c.Clock == 90000
	case c.is(H264):
		return c.Clock == 90000 && c.parameter("packetization-mode") == "1" && c.constrainedBaseline()
	}
	return c.Clock == 8000 && c.Channels <= 1
}

// constrainedBaseline reports whether an H.264 profile is the constrained baseline profile
// (RFC 6184, section 8.1, table 5).
func (c Codec) constrainedBaseline() bool {
	profile := strings.ToLower(c.parameter("profile-level-id"))
	if len(profile) != 6 {
		return false
	}
	flags := profile[2]
	return profile[:2] == "42" && strings.IndexByte("4567cdef", flags) >= 0
}

// parameter returns one of a codec's parameters.
func (c Codec) parameter(name string) string {
	for part := range strings.SplitSeq(c.Parameters, ";") {
		key, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		if strings.EqualFold(key, name) {
			return value
		}
	}
	return ""
}

// agreed returns the codec in the form in which our descriptions contain it.
func (c Codec) agreed(name string) Codec {
	a := Codec{Type: c.Type, Name: name, Clock: c.Clock, Channels: c.Channels}
	switch name {
	case Opus:
		a.Channels, a.Parameters = 2, "minptime=10;useinbandfec=1" // RFC 7587, section 7
	case H264:
		a.Parameters = c.Parameters
	}
	if name != VP8 && name != H264 {
		return a
	}

	for _, f := range feedback {
		if slices.Contains(c.Feedback, f) {
			a.Feedback = append(a.Feedback, f)
		}
	}
	return a
}

// events returns the telephone events of the section. It prefers events with the same clock rate as
// the codec that they interrupt (RFC 4733, section 2.1).
func (s *Section) events(clock int) (best Codec, ok bool) {
	if s.Kind != Audio {
		return Codec{}, false
	}
	for _, c := range s.Codecs {
		if !c.is(Events) || ok && c.Clock != clock {
			continue
		}
		best = Codec{Type: c.Type, Name: Events, Clock: c.Clock, Parameters: "0-15"}
		ok = true
		if c.Clock == clock {
			break
		}
	}
	return best, ok
}

// Accept returns the section after the client's answer. It contains what the offer s and the answer
// have in common, with the payload types and ids from the answer.
func (s *Section) Accept(answer *Section) Section {
	a := *s
	a.Direction, a.Setup, a.Reduced = answer.Direction.Reverse(), "passive", answer.Reduced
	a.Mux = answer.Mux
	var codecs []Codec
	for _, c := range s.Codecs {
		for _, d := range answer.Codecs {
			if d.is(c.Name) && d.Clock == c.Clock {
				c.Type = d.Type
				codecs = append(codecs, c)
				break
			}
		}
	}
	a.SetCodecs(codecs)

	a.Extensions = nil
	for _, e := range s.Extensions {
		if id := answer.Extension(e.URI); id != 0 {
			a.Extensions = append(a.Extensions, Extension{id, e.URI})
		}
	}
	return a
}
