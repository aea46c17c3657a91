package rtpengine

import (
	"errors"
	"maps"
	"net/netip"
	"slices"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/sdp"
)

// exchange sends rtpengine the descriptions of both sides, and returns rtpengine's description for
// the client. It is called again after each change. Sections that stay the same keep their ports
// and keys. The caller holds io.
func (l *leg) exchange() (forClient string, err error) {
	l.version++
	sending := l.destinations()
	ours, theirs := l.describeSwitch(sending), ""
	if l.accepted {
		theirs = l.describeClient()
	}

	forClient, forSwitch, err := l.negotiate(ours, theirs)
	if err != nil {
		return "", err
	}
	inner := map[calls.Kind]netip.AddrPort{}
	if forSwitch != "" {
		inner, err = readInner(forSwitch)
		if err != nil {
			return "", err
		}
	}

	l.established = l.accepted
	l.engine.mu.Lock()
	l.inner = inner
	l.sending = sending
	l.engine.mu.Unlock()
	return withoutTrickle(forClient), nil
}

// negotiate sends rtpengine the offer of one side, unless rtpengine already has it. If the other
// side has described its media, negotiate also sends that side's answer. It returns rtpengine's
// descriptions for both sides.
func (l *leg) negotiate(ours, theirs string) (forClient, forSwitch string, err error) {
	if !l.offered {
		forSwitch, err = l.describe("offer", clientTag, theirs)
		if err != nil {
			return "", "", err
		}
		forClient, err = l.describe("answer", switchTag, ours)
		return forClient, forSwitch, err
	}

	isAnsweredNow := l.accepted && !l.established
	if !isAnsweredNow {
		forClient, err = l.describe("offer", switchTag, ours)
		if err != nil {
			return "", "", err
		}
	}
	if l.accepted {
		forSwitch, err = l.describe("answer", clientTag, theirs)
	}
	return forClient, forSwitch, err
}

// describe sends rtpengine the description of one side, and returns rtpengine's description for the
// other side. by is the tag of the side that text describes. Errors of rtpengine are internal,
// because they are not the client's fault.
func (l *leg) describe(command, by, text string) (string, error) {
	arguments := dict{
		"call-id": l.session,
		"sdp":     text,
		"flags":   append([]string{"trust-address", "port-latching"}, l.flags(by)...),
	}
	other, direction := switchTag, []string{"external", "internal"}
	if by == switchTag {
		other, direction = clientTag, []string{"internal", "external"}
	}
	if command == "offer" {
		arguments["from-tag"] = by
		arguments["direction"] = direction
		if l.established {
			arguments["to-tag"] = other
		}
	} else {
		arguments["from-tag"] = other
		arguments["to-tag"] = by
	}
	if command == "offer" && !l.isPhone() {
		// With these flags, browsers always have the controlling role (RFC 8445, section 6.1.1).
		// Otherwise, the role would depend on which side sent the offer. It would change when a
		// client that was called adds video.
		arguments["ICE-lite"] = map[string]string{switchTag: "forward", clientTag: "backward"}[by]
	}
	if by == switchTag {
		maps.Copy(arguments, l.transport())
		l.offerCodecs(command, arguments)
	} else {
		maps.Copy(arguments, dict{
			"transport-protocol": l.innerProtocol(),
			"ICE":                "remove",
			"DTLS":               "off",
			"rtcp-mux":           []string{"offer", "require"},
		})
	}

	reply, err := l.daemon.request(command, arguments)
	if errors.Is(err, errDown) {
		return "", errUnavailable
	}
	return reply.text("sdp"), err
}

// flags returns the flags for the description of a side. by is the tag of the side. On the switch's
// side, rtpengine must not learn other addresses from packets. On a phone's side, it learns the
// port.
func (l *leg) flags(by string) (flags []string) {
	if by == switchTag {
		flags = append(flags, "asymmetric")
	} else if l.isPhone() {
		flags = append(flags, "strict-source")
	}
	if l.isPhone() {
		flags = append(flags, "inject-DTMF")
	}
	return flags
}

// transport returns the arguments for the client's side.
func (l *leg) transport() dict {
	switch {
	case !l.isPhone():
		return dict{
			"transport-protocol": "UDP/TLS/RTP/SAVPF",
			"ICE":                "force",
			"DTLS":               "passive",
			"SDES":               []string{"off"},
			"rtcp-mux":           []string{"offer", "require"},
		}
	case l.isSecure():
		return dict{
			"transport-protocol": "RTP/SAVP",
			"ICE":                "remove",
			"DTLS":               "off",
			"SDES":               l.otherSuites(),
			"rtcp-mux":           []string{"accept"},
		}
	}
	return dict{"transport-protocol": "RTP/AVP", "ICE": "remove", "DTLS": "off", "rtcp-mux": []string{"accept"}}
}

// weakSuites contains rtpengine's suites that calls never use. Some of them do not encrypt.
var weakSuites = []string{"AES_192_CM_HMAC_SHA1_80", "AES_192_CM_HMAC_SHA1_32", "F8_128_HMAC_SHA1_80",
	"F8_128_HMAC_SHA1_32", "NULL_HMAC_SHA1_80", "NULL_HMAC_SHA1_32"}

// otherSuites returns the flags that keep rtpengine from offering suites that the phone may not
// use.
func (l *leg) otherSuites() (flags []string) {
	permitted := sdp.Suites(l.terms.SRTP.Suites)
	for _, suite := range slices.Concat(sdp.Suites(""), weakSuites) {
		if !slices.Contains(permitted, suite) {
			flags = append(flags, "no-"+suite)
		}
	}
	return flags
}

// isSecure reports whether a phone uses SRTP.
func (l *leg) isSecure() bool {
	if !l.accepted {
		return l.terms.SRTP.Required
	}
	return slices.ContainsFunc(l.sections, func(s *section) bool { return s.client.IsSecure() })
}

// offerCodecs adds the codecs that rtpengine offers to a phone. If the phone chooses a codec that
// the caller does not use, rtpengine transcodes.
func (l *leg) offerCodecs(command string, arguments dict) {
	if !l.isPhone() || command != "offer" || !l.offered {
		return
	}
	codec := l.sections[0].ours.Codecs[0].Name
	known := l.terms.Codecs
	if len(known) == 0 {
		known = slices.Concat([]string{codec}, phoneCodecs)
	}
	codecs := dict{"transcode": slices.DeleteFunc(slices.Clone(known), func(c string) bool { return c == codec })}
	if !slices.Contains(known, codec) {
		codecs["mask"] = []string{codec}
	}
	arguments["codec"] = codecs
}
