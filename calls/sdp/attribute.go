package sdp

import (
	"encoding/hex"
	"strconv"
	"strings"
)

// attribute reads a=<name>:<value>. Unknown attributes are ignored.
func (p *parser) attribute(name, value string) error {
	s := p.current()
	switch name {
	case "ice-lite":
		p.d.Lite = true
	case "candidate":
		if p.candidates++; p.candidates > MaxCandidates {
			return invalid("the description has more than %d candidates", MaxCandidates)
		}

	case "mid":
		if !isToken(value) {
			return invalid("a=mid is malformed")
		}
		s.Mid = value
	case "sendrecv", "sendonly", "recvonly", "inactive":
		s.Direction = Direction(name)
	case "rtcp-rsize":
		s.Reduced = true
	case "rtcp-mux":
		s.Mux = true

	case "rtpmap", "fmtp", "rtcp-fb":
		return p.format(name, value)
	case "extmap":
		s.addExtension(value)
	case "msid", "ssrc":
		s.addSource(name, value)
	case "crypto":
		if p.phone {
			s.addCrypto(value)
		}
	default:
		return s.setTransport(name, value)
	}
	return nil
}

// setTransport reads the attributes for ICE (RFC 8839, section 5.4) and DTLS (RFC 8122, RFC 8842).
func (s *Section) setTransport(name, value string) error {
	switch name {
	case "ice-ufrag":
		if len(value) < 4 || len(value) > 256 {
			return invalid("a=ice-ufrag is malformed")
		}
		s.Ufrag = value
	case "ice-pwd":
		if len(value) < 22 || len(value) > 256 {
			return invalid("a=ice-pwd is malformed")
		}
		s.Password = value

	case "setup":
		if value != "active" && value != "passive" && value != "actpass" && value != "holdconn" {
			return invalid("a=setup is malformed")
		}
		s.Setup = value

	case "fingerprint":
		hash, digits, _ := strings.Cut(value, " ")
		sum, err := hex.DecodeString(strings.ReplaceAll(digits, ":", ""))
		if err != nil || len(sum) == 0 || len(sum) > 64 || !isToken(hash) {
			return invalid("a=fingerprint is malformed")
		}
		// A section may have several fingerprints. All clients support sha-256.
		hash = strings.ToLower(hash)
		if s.Fingerprint.Hash != "sha-256" || hash == "sha-256" {
			s.Fingerprint = Fingerprint{hash, strings.ToUpper(digits)}
		}
	}
	return nil
}

// format reads an attribute about a payload type.
func (p *parser) format(name, value string) error {
	number, rest, _ := strings.Cut(value, " ")
	n, err := strconv.ParseUint(number, 10, 7)
	if err != nil {
		return nil // a=rtcp-fb:*, or a payload type out of RTP's range
	}
	if len(p.maps) == 16*MaxCodecs {
		return invalid("a section has too many codec attributes")
	}

	c := Codec{Type: uint8(n)}
	switch name {
	case "fmtp":
		if len(rest) > maxParameters {
			return invalid("a=fmtp is longer than %d bytes", maxParameters)
		}
		c.Parameters = rest
	case "rtcp-fb":
		if len(rest) > maxToken {
			return invalid("a=rtcp-fb is malformed")
		}
		c.Feedback = []string{rest}
	case "rtpmap":
		parts := strings.Split(rest, "/")
		if len(parts) < 2 || len(parts) > 3 || !isToken(parts[0]) {
			return invalid("a=rtpmap is malformed")
		}

		c.Name = parts[0]
		clock, err := strconv.ParseUint(parts[1], 10, 24)
		if err != nil || clock == 0 {
			return invalid("a=rtpmap has a malformed clock rate")
		}

		c.Clock = int(clock)
		if len(parts) == 3 {
			channels, err := strconv.ParseUint(parts[2], 10, 8)
			if err != nil {
				return invalid("a=rtpmap has a malformed number of channels")
			}
			c.Channels = int(channels)
		}
	}
	p.maps = append(p.maps, c)
	return nil
}

// addExtension reads a=extmap:<id>[/<direction>] <uri>. Ids above 14 need two-byte headers,
// which answers never accept.
func (s *Section) addExtension(value string) {
	id, uri, _ := strings.Cut(value, " ")
	id, _, _ = strings.Cut(id, "/")
	uri, _, _ = strings.Cut(uri, " ")
	n, err := strconv.ParseUint(id, 10, 8)
	if err != nil || n == 0 || n > 14 || uri == "" || len(s.Extensions) == 16 || s.Extension(uri) != 0 {
		return
	}
	s.Extensions = append(s.Extensions, Extension{uint8(n), uri})
}

// addSource reads a=msid:<stream> <track> and the first a=ssrc:<ssrc> cname:<name>.
func (s *Section) addSource(name, value string) {
	first, rest, _ := strings.Cut(value, " ")
	if name == "msid" {
		if s.Stream == "" && isToken(first) && isToken(rest) {
			s.Stream, s.Track = first, rest
		}
		return
	}

	n, err := strconv.ParseUint(first, 10, 32)
	cname, ok := strings.CutPrefix(rest, "cname:")
	if err == nil && ok && s.SSRC == 0 && isToken(cname) {
		s.SSRC, s.Name = uint32(n), cname
	}
}
