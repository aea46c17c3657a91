// Package sdp reads and writes the session descriptions (RFC 8866, RFC 8829) of calls, in the form
// that browsers and the stock SDK require. Every media section has its own transport, and audio
// comes first.
//
// [Parse] reads a client's description within fixed limits, [Section.Answer] selects what a section
// can carry, and [Description.String] formats a description. The functions have no side effects.
// Credentials, addresses and keys come from the caller. Clients' candidates are not read, because
// the engine sends only to addresses that were verified with STUN.
package sdp

import (
	"net/netip"
	"slices"
	"strings"
)

// These constants limit a client's description. Browsers stay far below all of them.
const (
	MaxSize       = 64 << 10
	MaxSections   = 4
	MaxCodecs     = 64 // codecs per section
	MaxCandidates = 64 // candidates in all sections
	maxAttributes = 1024
	maxToken      = 64  // mids, credentials and other names
	maxParameters = 512 // parameters of a codec
)

// The kinds of sections that calls can carry. Sections of other kinds are rejected.
const (
	Audio = "audio"
	Video = "video"
)

// A Description is an offer or an answer.
type Description struct {
	Session  uint64 // identifies the session (RFC 8866, section 5.2)
	Version  uint64 // increases with each description in the session
	Lite     bool   // the sender is an ICE-lite agent (RFC 8839, section 5.3)
	Sections []Section
}

// A Section is one media section with the attributes that selvage uses. Attributes that apply to
// all sections of a description are copied into each.
type Section struct {
	Kind     string // audio, video or another kind
	Protocol string // such as UDP/TLS/RTP/SAVPF
	Formats  string // payload types as listed in the m= line
	Mid      string
	Rejected bool // port 0

	Direction  Direction
	Codecs     []Codec // in the order of preference
	Extensions []Extension
	Reduced    bool // reduced-size RTCP (RFC 5506)
	Bandwidth  int  // the maximum rate that the author receives, in kbit/s; 0 means unlimited

	Ufrag       string // ICE username fragment
	Password    string // ICE password
	Fingerprint Fingerprint
	Setup       string // active, passive or actpass (RFC 8842)

	// These fields describe the source that the author of the description sends in this section.
	SSRC   uint32
	Name   string // CNAME of the source
	Stream string // groups tracks that are played together
	Track  string

	Candidates []Candidate // never filled by Parse

	// Phones use these instead of ICE.
	Address netip.Addr // where the author receives RTP; only filled by ParsePhone
	Port    int
	Mux     bool     // RTCP shares the port with RTP (RFC 5761)
	Crypto  []Crypto // the author's keys for SRTP, best first; only from ParsePhone
}

// A Direction specifies which sides send in a section, from the point of view of the description's
// author.
type Direction string

// The directions (RFC 8866, section 6.7).
const (
	SendReceive Direction = "sendrecv"
	SendOnly    Direction = "sendonly"
	ReceiveOnly Direction = "recvonly"
	Inactive    Direction = "inactive"
)

// Sends reports whether the author of the description sends.
func (d Direction) Sends() bool { return d == SendReceive || d == SendOnly }

// Receives reports whether the author of the description receives.
func (d Direction) Receives() bool { return d == SendReceive || d == ReceiveOnly }

// Reverse returns the direction from the point of view of the other side.
func (d Direction) Reverse() Direction {
	switch d {
	case SendOnly:
		return ReceiveOnly
	case ReceiveOnly:
		return SendOnly
	}
	return d
}

// A Codec is a payload format and its payload type in one section.
type Codec struct {
	Type       uint8  // RTP payload type
	Name       string // as registered: opus, G722, PCMU, PCMA, telephone-event, VP8, H264
	Clock      int    // RTP clock rate
	Channels   int    // 0 if not stated
	Parameters string // a=fmtp
	Feedback   []string
}

// An Extension is an RTP header extension (RFC 8285).
type Extension struct {
	ID  uint8
	URI string
}

// A Fingerprint identifies a certificate (RFC 8122), such as sha-256 and 4A:AD:….
type Fingerprint struct {
	Hash  string
	Value string
}

// A Candidate is an address at which the author of the description can be reached.
type Candidate struct {
	Foundation string
	Transport  string // udp or tcp
	Priority   uint32
	Address    string
	Port       int
}

// Find returns the codec with the given payload type.
func (s *Section) Find(payloadType uint8) (Codec, bool) {
	for _, c := range s.Codecs {
		if c.Type == payloadType {
			return c, true
		}
	}
	return Codec{}, false
}

// Named returns the codec with the given name.
func (s *Section) Named(name string) (Codec, bool) {
	for _, c := range s.Codecs {
		if c.is(name) {
			return c, true
		}
	}
	return Codec{}, false
}

// Extension returns the id of a header extension, or 0 if the section does not use it.
func (s *Section) Extension(uri string) uint8 {
	for _, e := range s.Extensions {
		if e.URI == uri {
			return e.ID
		}
	}
	return 0
}

// Sort moves audio sections to the front. If an offer begins with video, the stock SDK swaps its
// sections and expects the answer in the new order.
func (d *Description) Sort() {
	rank := func(s Section) int {
		if s.Kind == Audio {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(d.Sections, func(a, b Section) int { return rank(a) - rank(b) })
}

// is reports whether the codec has the given name, ignoring case.
func (c Codec) is(name string) bool { return strings.EqualFold(c.Name, name) }
