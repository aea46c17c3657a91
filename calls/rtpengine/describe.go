package rtpengine

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/sdp"
	"github.com/selvage/selvage/internal/problem"
)

func itoa(n int) string { return strconv.Itoa(n) }

// The tags of a session's two sides.
const (
	clientTag = "client"
	switchTag = "switch"
)

// phoneCodecs contains the codecs that are offered to phones in addition to the caller's codecs.
var phoneCodecs = []string{sdp.G722, sdp.PCMU, sdp.PCMA}

// parse parses a description from the client.
func (l *leg) parse(text string) (*sdp.Description, error) {
	if l.isPhone() {
		return sdp.ParsePhone(text)
	}
	d, err := sdp.Parse(text)
	if err != nil {
		return nil, err
	}
	d.Sort()
	return d, nil
}

// plan returns the sections for an offer from the client. before contains the previous sections,
// which keep their codecs.
func (l *leg) plan(offer string, before []*section) (planned []*section, err error) {
	d, err := l.parse(offer)
	if err != nil {
		return nil, err
	}

	carried := map[string]bool{}
	for i := range d.Sections {
		o := &d.Sections[i]
		s := &section{kind: calls.Kind(o.Kind), ours: l.answer(o, before)}
		if carried[o.Kind] {
			s.ours.Rejected = true
		}
		s.client = l.clean(o, s.ours)
		if s.live() {
			if err := l.checkUsable(o); err != nil {
				return nil, err
			}
			carried[o.Kind] = true
		}
		planned = append(planned, s)
	}

	if len(carried) == 0 {
		return nil, problem.New(problem.Invalid, "no_media", "the offer has no section that can be used: "+
			"Opus, G.722, PCMU or PCMA for audio and, from browsers, VP8 or H.264 for video")
	}
	return planned, nil
}

// answer selects what an offered section carries. Browsers send Opus if they support it, because
// rtpengine transcodes it for phones.
func (l *leg) answer(o *sdp.Section, before []*section) (a sdp.Section) {
	var preferred []string
	for _, s := range before {
		if s.live() && string(s.kind) == o.Kind {
			preferred = []string{s.ours.Codecs[0].Name}
		}
	}

	if l.isPhone() {
		if len(preferred) == 0 {
			preferred = l.terms.Codecs
		}
		a = o.AnswerPhone(sdp.Suites(l.terms.SRTP.Suites), preferred...)
		if l.terms.SRTP.Required && !o.IsSecure() {
			a.Rejected = true
		}
		a.Crypto = nil
	} else {
		a = o.Answer(preferred...)
	}

	a.Protocol = l.innerProtocol()
	a.Setup = ""
	a.SetCodecs(withoutRoomCodec(a.Codecs))
	return a
}

// withoutRoomCodec removes the second audio codec, which only rooms use.
func withoutRoomCodec(codecs []sdp.Codec) []sdp.Codec {
	return slices.DeleteFunc(slices.Clone(codecs), func(c sdp.Codec) bool {
		return c.Name != codecs[0].Name && c.Name != sdp.Events
	})
}

// phoneEvents returns the audio codecs for a called phone: the first of the given codecs, and
// telephone events at the clock rate of phones. If the events are missing, it adds them with the
// payload type 101. Many phones answer with this type, no matter which type was offered.
func phoneEvents(codecs []sdp.Codec) []sdp.Codec {
	events := sdp.Codec{Type: 101, Name: sdp.Events, Clock: 8000, Parameters: "0-15"}
	for _, c := range codecs[1:] {
		if c.Name == sdp.Events && c.Clock == events.Clock {
			events = c
		}
	}
	return []sdp.Codec{codecs[0], events}
}

// checkUsable returns an error unless a client's section has everything that its transport
// requires.
func (l *leg) checkUsable(s *sdp.Section) error {
	if l.isPhone() {
		return l.checkKeys(s)
	}
	switch {
	case s.Ufrag == "" || s.Password == "":
		return problem.New(problem.Invalid, "invalid_sdp", "section %s has no ICE credentials", s.Mid)
	case s.Fingerprint.Hash == "":
		return problem.New(problem.Invalid, "invalid_sdp", "section %s has no fingerprint that can be used", s.Mid)
	}
	return nil
}

// checkKeys returns an error unless a phone's section has the required encryption. rtpengine would
// accept suites that do not encrypt.
func (l *leg) checkKeys(s *sdp.Section) error {
	if !s.IsSecure() {
		if l.terms.SRTP.Required {
			return problem.New(problem.Invalid, "invalid_sdp", "the phone must use SRTP")
		}
		return nil
	}
	if _, ok := s.FindCrypto(sdp.Suites(l.terms.SRTP.Suites)); !ok {
		return problem.New(problem.Invalid, "invalid_sdp", "the phone has no key for SRTP that can be used")
	}
	return nil
}

// clean returns a client's section in the form for rtpengine. It contains only the codecs in use.
// It contains the client's address only if the client is a phone.
func (l *leg) clean(o *sdp.Section, ours sdp.Section) sdp.Section {
	c := *o
	c.SetCodecs(ours.Codecs)
	c.Extensions = ours.Extensions
	c.Rejected = ours.Rejected
	c.Bandwidth = 0
	c.SSRC = 0
	c.Name = ""
	c.Stream = ""
	c.Track = ""
	if !l.isPhone() {
		drain := addressOf(l.daemon.drain)
		c.Address = drain.Addr()
		c.Port = int(drain.Port())
		return c
	}

	c.Address = l.remoteFor(o.Address)
	c.Crypto = slices.DeleteFunc(slices.Clone(o.Crypto), func(k sdp.Crypto) bool {
		return !slices.Contains(sdp.Suites(l.terms.SRTP.Suites), k.Suite)
	})
	return c
}

// remoteFor returns the address with which packets are exchanged. described is the address in the
// client's description. For phones, packets are exchanged with the proved address. For gateways,
// the described address is used, unless its address family differs from that of the proved address,
// or it is private, loopback or unusable while the proved address is not.
func (l *leg) remoteFor(described netip.Addr) netip.Addr {
	proved := l.phone
	switch {
	case !l.terms.Gateway:
		return proved
	case !described.IsGlobalUnicast() && !described.IsLoopback():
		return proved
	case described.Is4() != proved.Is4():
		return proved
	case described.IsLoopback() && !proved.IsLoopback():
		return proved
	case described.IsPrivate() && !proved.IsPrivate() && !proved.IsLoopback():
		return proved
	}
	return described
}

// accept applies the client's answer to our offer. The caller holds io.
func (l *leg) accept(d *sdp.Description) error {
	accepted := 0
	for i, s := range l.sections {
		s.client = sdp.Section{
			Kind:     string(s.kind),
			Protocol: s.ours.Protocol,
			Mid:      s.ours.Mid,
			Formats:  s.ours.Formats,
			Rejected: true,
		}
		a := findAnswer(d, s.ours.Mid, i)
		if a == nil || a.Rejected || a.Kind != string(s.kind) {
			s.ours.Rejected = true
			continue
		}
		if err := l.checkUsable(a); err != nil {
			return err
		}
		s.client = l.clean(a, sdp.Section{Codecs: a.Codecs, Extensions: a.Extensions})
		accepted++
	}

	if accepted == 0 {
		return problem.New(problem.Invalid, "no_media", "the answer has no section that can be used")
	}
	return nil
}

// findAnswer returns the section with the given mid. Some phones do not repeat mids, so it may
// return the section with the given index instead.
func findAnswer(d *sdp.Description, mid string, index int) *sdp.Section {
	for i := range d.Sections {
		if d.Sections[i].Mid == mid {
			return &d.Sections[i]
		}
	}
	if index < len(d.Sections) {
		return &d.Sections[index]
	}
	return nil
}

// innerProtocol returns the protocol on the switch's side. It is the client's protocol without
// encryption.
func (l *leg) innerProtocol() string {
	if l.isPhone() {
		return "RTP/AVP"
	}
	return "RTP/AVPF"
}

// describeClient returns the client's description in the form for rtpengine. The caller holds io.
func (l *leg) describeClient() string {
	d := sdp.Description{Session: 1, Version: l.version}
	for _, s := range l.sections {
		d.Sections = append(d.Sections, s.client)
	}
	if l.isPhone() {
		return d.Phone()
	}
	return d.String()
}

// describeSwitch returns the switch's description, which contains the addresses to which the
// client's media goes. The caller holds io.
func (l *leg) describeSwitch(sending map[calls.Kind]netip.AddrPort) string {
	d := sdp.Description{Session: 1, Version: l.version}
	for _, s := range l.sections {
		ours, to := s.ours, sending[s.kind]
		if s.live() {
			ours.Address, ours.Port = to.Addr(), int(to.Port())
		}
		ours.Direction = sdp.SendReceive
		if l.accepted {
			ours.Direction = s.client.Direction.Reverse()
		}
		d.Sections = append(d.Sections, ours)
	}
	return d.String()
}

// readInner returns the addresses at which rtpengine receives media for the client, according to
// its description.
func readInner(text string) (map[calls.Kind]netip.AddrPort, error) {
	d, err := sdp.ParsePhone(text)
	if err != nil {
		return nil, err
	}
	inner := map[calls.Kind]netip.AddrPort{}
	for _, s := range d.Sections {
		if !s.Rejected {
			inner[calls.Kind(s.Kind)] = netip.AddrPortFrom(s.Address, uint16(s.Port))
		}
	}
	return inner, nil
}

// withoutTrickle removes the offer of more candidates, because none follow.
func withoutTrickle(text string) string {
	return strings.ReplaceAll(text, "a=ice-options:trickle\r\n", "")
}
