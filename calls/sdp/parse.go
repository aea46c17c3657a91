package sdp

import (
	"strconv"
	"strings"

	"github.com/selvage/selvage/internal/problem"
)

// Parse parses a description. An error is problem.Invalid and describes what is wrong. The work is
// linear in the length of text, which may be at most [MaxSize] bytes.
func Parse(text string) (*Description, error) { return parse(text, false) }

func parse(text string, phone bool) (*Description, error) {
	if len(text) > MaxSize {
		return nil, invalid("the description is longer than %d bytes", MaxSize)
	}
	if !strings.HasPrefix(text, "v=0\r\n") && !strings.HasPrefix(text, "v=0\n") {
		return nil, invalid("the description does not begin with v=0")
	}

	p := parser{phone: phone}
	for line := range strings.Lines(text) {
		if err := p.line(strings.TrimRight(line, "\r\n")); err != nil {
			return nil, err
		}
	}
	return p.finish()
}

// invalid returns the error for a description that cannot be used.
func invalid(format string, args ...any) error {
	return problem.New(problem.Invalid, "invalid_sdp", format, args...)
}

// A parser reads a description line by line.
type parser struct {
	d          Description
	phone      bool    // the description comes from a phone
	session    Section // attributes before the first section
	candidates int
	attributes int
	maps       []Codec // a=rtpmap, a=fmtp and a=rtcp-fb of the current section
}

// current returns the section that attributes belong to.
func (p *parser) current() *Section {
	if n := len(p.d.Sections); n > 0 {
		return &p.d.Sections[n-1]
	}
	return &p.session
}

// line reads one line, without its line ending.
func (p *parser) line(line string) error {
	if line == "" {
		return nil
	}
	if len(line) < 2 || line[1] != '=' || !isPrintable(line) {
		return invalid("the description has a malformed line")
	}

	value := line[2:]
	switch line[0] {
	case 'o':
		return p.origin(value)
	case 'm':
		return p.media(value)
	case 'c':
		if p.phone {
			p.setConnection(value)
		}
	case 'b':
		if kbits, ok := strings.CutPrefix(value, "AS:"); ok {
			n, _ := strconv.ParseUint(kbits, 10, 24) // a malformed value means unlimited
			p.current().Bandwidth = int(n)
		}
	case 'a':
		if p.attributes++; p.attributes > maxAttributes {
			return invalid("the description has more than %d attributes", maxAttributes)
		}
		name, value, _ := strings.Cut(value, ":")
		return p.attribute(name, value)
	}
	return nil
}

// isPrintable reports whether a line has no control characters except tabs. Answers repeat parts of lines, and a
// control character could end a line of the answer.
func isPrintable(line string) bool {
	for i := range len(line) {
		if line[i] < ' ' && line[i] != '\t' || line[i] == 0x7f {
			return false
		}
	}
	return true
}

// origin reads o=<username> <session> <version> ….
func (p *parser) origin(value string) error {
	fields := strings.Fields(value)
	if len(fields) < 3 {
		return invalid("the o= line is incomplete")
	}

	// Clients may use numbers of any size. Only the numbers in our own descriptions matter.
	p.d.Session, _ = strconv.ParseUint(fields[1], 10, 64)
	p.d.Version, _ = strconv.ParseUint(fields[2], 10, 64)
	return nil
}

// media reads m=<kind> <port> <protocol> <formats>, which begins a section.
func (p *parser) media(value string) error {
	if err := p.endSection(); err != nil {
		return err
	}
	if len(p.d.Sections) == MaxSections {
		return invalid("the description has more than %d sections", MaxSections)
	}

	fields := strings.Fields(value)
	if len(fields) < 4 || !isToken(fields[0]) || !isToken(strings.ReplaceAll(fields[2], "/", "")) {
		return invalid("an m= line is incomplete")
	}
	if len(fields)-3 > MaxCodecs {
		return invalid("a section has more than %d codecs", MaxCodecs)
	}
	port, _, _ := strings.Cut(fields[1], "/")
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return invalid("an m= line has a malformed port")
	}

	p.d.Sections = append(p.d.Sections, Section{
		Kind:        fields[0],
		Protocol:    fields[2],
		Formats:     strings.Join(fields[3:], " "),
		Rejected:    number == 0,
		Direction:   p.session.Direction,
		Reduced:     p.session.Reduced,
		Ufrag:       p.session.Ufrag,
		Password:    p.session.Password,
		Fingerprint: p.session.Fingerprint,
		Setup:       p.session.Setup,
		Address:     p.session.Address,
		Port:        int(number),
	})
	return nil
}

// finish completes the last section and returns the description.
func (p *parser) finish() (*Description, error) {
	if err := p.endSection(); err != nil {
		return nil, err
	}
	if len(p.d.Sections) == 0 {
		return nil, invalid("the description has no section")
	}

	if p.phone {
		p.d.finishPhone()
	}
	mids := map[string]bool{}
	for _, s := range p.d.Sections {
		if s.Mid == "" {
			return nil, invalid("a section has no a=mid")
		}
		if mids[s.Mid] {
			return nil, invalid("two sections have the same a=mid")
		}
		mids[s.Mid] = true
	}
	return &p.d, nil
}

// endSection resolves the payload types of the section that has just been read.
func (p *parser) endSection() error {
	if len(p.d.Sections) == 0 {
		return nil
	}
	s := p.current()
	if s.Direction == "" {
		s.Direction = SendReceive // RFC 8866, section 6.7
	}
	maps := p.maps
	p.maps = nil
	if s.Kind != Audio && s.Kind != Video {
		return nil
	}

	for _, format := range strings.Fields(s.Formats) {
		n, err := strconv.ParseUint(format, 10, 7)
		if err != nil {
			return invalid("an m= line has a malformed payload type")
		}
		c := resolve(uint8(n), maps)
		if _, isDuplicate := s.Find(c.Type); c.Name != "" && !isDuplicate {
			s.Codecs = append(s.Codecs, c)
		}
	}
	return nil
}

// resolve returns the codec for a payload type, from its attributes or from the static assignments
// (RFC 3551, section 6). If the payload type is unknown, the codec has no name.
func resolve(payloadType uint8, maps []Codec) Codec {
	c := Codec{Type: payloadType, Clock: 8000}
	switch payloadType {
	case 0:
		c.Name = PCMU
	case 8:
		c.Name = PCMA
	case 9:
		c.Name = G722
	}

	for _, m := range maps {
		if m.Type != payloadType {
			continue
		}
		if m.Name != "" {
			c.Name, c.Clock, c.Channels = m.Name, m.Clock, m.Channels
		}
		if m.Parameters != "" {
			c.Parameters = m.Parameters
		}
		c.Feedback = append(c.Feedback, m.Feedback...)
	}
	return c
}

// isToken reports whether a name is at most maxToken bytes long and consists of the characters that
// RFC 8866, section 9, allows.
func isToken(name string) bool {
	if name == "" || len(name) > maxToken {
		return false
	}
	for i := range len(name) {
		c := name[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]`, c) >= 0 {
			return false
		}
	}
	return true
}
