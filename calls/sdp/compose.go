package sdp

import (
	"fmt"
	"strconv"
	"strings"
)

func itoa(n int) string { return strconv.Itoa(n) }

// String formats the description. It contains no a=group, so that each section keeps its own
// transport. The stock SDK requires this, because it waits for candidates from every section.
func (d *Description) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "v=0\r\no=- %d %d IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n", d.Session, d.Version)
	if d.Lite {
		b.WriteString("a=ice-lite\r\n")
	}
	b.WriteString("a=msid-semantic: WMS *\r\n")
	for i := range d.Sections {
		d.Sections[i].write(&b)
	}
	return b.String()
}

// write writes one section.
func (s *Section) write(b *strings.Builder) {
	port, address := 9, "0.0.0.0" // RFC 8829, section 5.2.1: no candidates yet
	if len(s.Candidates) > 0 {
		port, address = s.Candidates[0].Port, s.Candidates[0].Address
	}
	if s.Address.IsValid() {
		port, address = s.Port, s.Address.String()
	}
	if s.Rejected {
		port, address = 0, "0.0.0.0"
	}
	family := "IP4"
	if strings.Contains(address, ":") {
		family = "IP6"
	}

	fmt.Fprintf(b, "m=%s %d %s %s\r\n", s.Kind, port, s.Protocol, s.Formats)
	fmt.Fprintf(b, "c=IN %s %s\r\n", family, address)
	if s.Bandwidth > 0 && !s.Rejected {
		fmt.Fprintf(b, "b=AS:%d\r\n", s.Bandwidth)
	}
	fmt.Fprintf(b, "a=mid:%s\r\n", s.Mid)
	if s.Direction != "" {
		fmt.Fprintf(b, "a=%s\r\n", s.Direction)
	}
	if s.Rejected {
		return
	}

	s.writeTransport(b)
	s.writeMedia(b)
}

// writeTransport writes the attributes of ICE and DTLS.
func (s *Section) writeTransport(b *strings.Builder) {
	if s.Ufrag != "" && s.Password != "" {
		fmt.Fprintf(b, "a=ice-ufrag:%s\r\na=ice-pwd:%s\r\n", s.Ufrag, s.Password)
	}
	if s.Fingerprint.Hash != "" {
		fmt.Fprintf(b, "a=fingerprint:%s %s\r\n", s.Fingerprint.Hash, s.Fingerprint.Value)
	}
	if s.Setup != "" {
		fmt.Fprintf(b, "a=setup:%s\r\n", s.Setup)
	}
	b.WriteString("a=rtcp-mux\r\n")
	if s.Reduced {
		b.WriteString("a=rtcp-rsize\r\n")
	}

	for _, c := range s.Candidates {
		fmt.Fprintf(b, "a=candidate:%s 1 %s %d %s %d typ host",
			c.Foundation, c.Transport, c.Priority, c.Address, c.Port)
		if c.Transport == "tcp" {
			b.WriteString(" tcptype passive") // RFC 6544, section 4.5
		}
		b.WriteString("\r\n")
	}
	if len(s.Candidates) > 0 {
		b.WriteString("a=end-of-candidates\r\n")
	}
}

// writeMedia writes codecs, header extensions and the source.
func (s *Section) writeMedia(b *strings.Builder) {
	s.writeCodecs(b)
	for _, e := range s.Extensions {
		fmt.Fprintf(b, "a=extmap:%d %s\r\n", e.ID, e.URI)
	}
	if s.Stream != "" {
		fmt.Fprintf(b, "a=msid:%s %s\r\n", s.Stream, s.Track)
	}
	if s.SSRC != 0 {
		fmt.Fprintf(b, "a=ssrc:%d cname:%s\r\n", s.SSRC, s.Name)
	}
}

// writeCodecs writes the codecs.
func (s *Section) writeCodecs(b *strings.Builder) {
	for _, c := range s.Codecs {
		fmt.Fprintf(b, "a=rtpmap:%d %s/%d", c.Type, c.Name, c.Clock)
		if c.Channels > 0 {
			fmt.Fprintf(b, "/%d", c.Channels)
		}
		b.WriteString("\r\n")
		if c.Parameters != "" {
			fmt.Fprintf(b, "a=fmtp:%d %s\r\n", c.Type, c.Parameters)
		}
		for _, f := range c.Feedback {
			fmt.Fprintf(b, "a=rtcp-fb:%d %s\r\n", c.Type, f)
		}
	}
}
