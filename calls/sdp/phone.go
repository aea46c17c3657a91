package sdp

import (
	"fmt"
	"net/netip"
	"strings"
)

// ParsePhone parses the description of a phone, which uses RTP without ICE and DTLS (RFC 3264). It
// has the same limits as [Parse]. Sections without a=mid get their index as Mid.
func ParsePhone(text string) (*Description, error) { return parse(text, true) }

// setConnection reads c=IN <family> <address>. It does not resolve names, and ignores unusable
// addresses. Media goes to the address from which the phone sends.
func (p *parser) setConnection(value string) {
	fields := strings.Fields(value)
	if len(fields) != 3 {
		return
	}
	host, _, _ := strings.Cut(fields[2], "/") // a multicast address may have a TTL
	if a, err := netip.ParseAddr(host); err == nil {
		p.current().Address = a.Unmap().WithZone("")
	}
}

// finishPhone adds what phones omit from their descriptions.
func (d *Description) finishPhone() {
	for i := range d.Sections {
		s := &d.Sections[i]
		if s.Mid == "" {
			s.Mid = itoa(i)
		}
		// In old descriptions, this address means hold (RFC 3264, section 8.4).
		if s.Address.IsValid() && s.Address.IsUnspecified() && s.Direction.Receives() {
			s.Direction = held[s.Direction]
		}
	}
}

// held maps each direction in which a client receives to the one in which it no longer does.
var held = map[Direction]Direction{SendReceive: SendOnly, ReceiveOnly: Inactive}

// AnswerPhone is like [Section.Answer], for a section that a phone offers. Only audio over RTP is
// accepted. If the phone offers SRTP, the answer names the first of the suites that the phone
// supports, without a key.
func (s *Section) AnswerPhone(suites []string, first ...string) Section {
	a := Section{Kind: s.Kind, Protocol: s.Protocol, Mid: s.Mid, Formats: s.Formats, Mux: s.Mux}
	codecs := s.choose(first)
	crypto, known := s.FindCrypto(suites)
	if s.Rejected || len(codecs) == 0 || !s.isPlain() && !(s.IsSecure() && known) {
		a.Rejected, a.Direction = true, Inactive
		return a
	}
	if s.IsSecure() {
		a.Crypto = []Crypto{{Tag: crypto.Tag, Suite: crypto.Suite}}
	}
	a.Direction = s.Direction.Reverse()
	a.SetCodecs(codecs)
	return a
}

// PlainOffer returns an offer of a phone at an address, with audio in the codecs that all phones
// support. If key is not nil, the audio uses SRTP. The offer does not name the phone's port, which is
// not known yet.
func PlainOffer(at netip.Addr, key *Crypto) string {
	s := Section{Kind: Audio, Protocol: "RTP/AVP", Direction: SendReceive, Address: at, Port: discard}
	if key != nil {
		s.Protocol = "RTP/SAVP"
		s.Crypto = []Crypto{*key}
	}
	s.SetCodecs([]Codec{
		{Type: 0, Name: PCMU, Clock: 8000},
		{Type: 8, Name: PCMA, Clock: 8000},
		{Type: 101, Name: Events, Clock: 8000, Parameters: "0-15"},
	})
	d := Description{Version: 1, Sections: []Section{s}}
	return d.Phone()
}

// discard is the port of the discard protocol (RFC 863). In descriptions, it means that a port is
// not known yet (RFC 8829, section 5.2.1).
const discard = 9

// Resume returns a phone's description, changed so that neither side holds the call: both send and
// receive.
func Resume(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		switch strings.TrimRight(line, "\r\n") {
		case "a=sendonly", "a=recvonly", "a=inactive", "c=IN IP4 0.0.0.0", "c=IN IP6 ::":
		default:
			b.WriteString(line)
		}
	}
	return b.String()
}

// Readdress replaces an address with another one in a description that [Description.Phone] has
// written. It returns other descriptions unchanged, for example those of rtpengine, whose origin is a
// different address.
func Readdress(text string, former, latter netip.Addr) string {
	line := connection(former) + "\r\n"
	if !strings.Contains(text, line+"s=-\r\n") {
		return text
	}
	return strings.ReplaceAll(text, line, connection(latter)+"\r\n")
}

// isPlain reports whether the section is audio over unencrypted RTP.
func (s *Section) isPlain() bool {
	return s.Kind == Audio && (s.Protocol == "RTP/AVP" || s.Protocol == "RTP/AVPF")
}

// OfferPhone returns a section for a phone. It offers telephone events and the first codec that s
// has agreed on, because the other side sends this codec. If suites is not empty, the section uses
// SRTP, and the keys are missing.
func (s *Section) OfferPhone(mid string, suites []string) Section {
	o := Section{Kind: s.Kind, Protocol: "RTP/AVP", Mid: mid, Direction: SendReceive, Mux: true}
	for i, suite := range suites {
		o.Protocol, o.Crypto = "RTP/SAVP", append(o.Crypto, Crypto{Tag: i + 1, Suite: suite})
	}
	codecs := make([]Codec, 0, len(s.Codecs))
	for i, c := range s.Codecs {
		if i > 0 && c.Name != Events {
			continue
		}
		c.Feedback = nil
		codecs = append(codecs, c)
	}
	o.SetCodecs(codecs)
	return o
}

// Phone formats the description for a phone. The sections contain addresses and ports.
func (d *Description) Phone() string {
	var b strings.Builder
	fmt.Fprintf(&b, "v=0\r\no=- %d %d %s\r\ns=-\r\nt=0 0\r\n", d.Session, d.Version, connection(d.address()))
	for i := range d.Sections {
		d.Sections[i].writePhone(&b)
	}
	return b.String()
}

// address returns the address of the first section that has one, or 0.0.0.0.
func (d *Description) address() netip.Addr {
	for _, s := range d.Sections {
		if s.Address.IsValid() {
			return s.Address
		}
	}
	return netip.IPv4Unspecified()
}

// connection formats an address for c= and o= lines.
func connection(a netip.Addr) string {
	if a.Is6() {
		return "IN IP6 " + a.String()
	}
	return "IN IP4 " + a.String()
}

// writePhone writes one section for a phone.
func (s *Section) writePhone(b *strings.Builder) {
	if s.Rejected {
		fmt.Fprintf(b, "m=%s 0 %s %s\r\n", s.Kind, s.Protocol, s.Formats)
		return
	}
	fmt.Fprintf(b, "m=%s %d %s %s\r\nc=%s\r\n", s.Kind, s.Port, s.Protocol, s.Formats, connection(s.Address))
	s.writeCodecs(b)
	if s.Kind == Audio {
		b.WriteString("a=ptime:20\r\n")
	}
	if s.Mux {
		b.WriteString("a=rtcp-mux\r\n")
	}
	s.writeCrypto(b)
	fmt.Fprintf(b, "a=%s\r\n", s.Direction)
}
