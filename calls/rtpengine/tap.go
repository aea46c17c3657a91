package rtpengine

import (
	"encoding/binary"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/sdp"
)

// A tap receives copies of the client's packets from rtpengine. To rtpengine, the tap is a
// subscriber of the session. The audio arrives as the client sent it, but without encryption. It also
// arrives while the client is muted; the tap then drops it.
type tap struct {
	to    calls.Tap
	conn  *net.UDPConn
	muted func() bool
}

// Record implements calls.Media.
func (l *leg) Record(to calls.Tap) {
	l.io.Lock()
	defer l.io.Unlock()
	l.tap.stop()
	l.tap = nil
	if to != nil && !l.isClosed() {
		l.startTap(to)
	}
}

// startTap begins to pass copies of the client's packets to a recording. If rtpengine refuses, the
// leg fails. The caller holds io.
func (l *leg) startTap(to calls.Tap) {
	t, err := l.subscribe(to)
	if err != nil {
		l.engine.log.Error("recording by rtpengine", "error", err)
		l.engine.background(func() { l.fail(err) })
	}
	l.tap = t
}

// resubscribe makes the tap continue with a new session. The caller holds io.
func (l *leg) resubscribe() {
	if l.tap == nil {
		return
	}
	l.tap.stop()
	l.startTap(l.tap.to)
}

// subscribe asks rtpengine for copies of the client's packets. The caller holds io.
func (l *leg) subscribe(to calls.Tap) (*tap, error) {
	reply, err := l.daemon.request("subscribe request", dict{
		"call-id":            l.session,
		"from-tag":           clientTag,
		"to-tag":             "tap",
		"ICE":                "remove",
		"DTLS":               "off",
		"SDES":               []string{"off"},
		"transport-protocol": "RTP/AVP",
		"interface":          "internal",
		"rtcp-mux":           []string{"offer", "require"},
		"flags":              []string{"trust-address"},
	})
	if err != nil {
		return nil, err
	}
	d, err := sdp.ParsePhone(reply.text("sdp"))
	if err != nil {
		return nil, err
	}
	conn, err := l.daemon.listen()
	if err != nil {
		return nil, err
	}

	t := &tap{to: to, conn: conn, muted: l.isMuted}
	s, answer := t.answer(d)
	_, err = l.daemon.request("subscribe answer", dict{
		"call-id": l.session,
		"to-tag":  reply.text("to-tag"),
		"sdp":     answer,
		"flags":   []string{"trust-address", "allow-transcoding"},
	})
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	l.engine.background(func() { t.read(s) })
	return t, nil
}

// answer returns the section of audio in rtpengine's description, and our answer, which accepts
// only this section.
func (t *tap) answer(d *sdp.Description) (audio sdp.Section, text string) {
	local := addressOf(t.conn)
	a := sdp.Description{Session: 1, Version: 1}
	for _, s := range d.Sections {
		ours := sdp.Section{
			Kind:      s.Kind,
			Protocol:  s.Protocol,
			Formats:   s.Formats,
			Mid:       s.Mid,
			Codecs:    s.Codecs,
			Direction: sdp.ReceiveOnly,
			Address:   local.Addr(),
			Port:      int(local.Port()),
			Mux:       true,
		}
		if s.Kind == sdp.Audio && !s.Rejected && audio.Kind == "" {
			audio = s
		} else {
			ours.Rejected = true
		}
		a.Sections = append(a.Sections, ours)
	}
	return audio, a.String()
}

// stop ends the tap. rtpengine may continue to send copies until the session ends or has another
// subscriber.
func (t *tap) stop() {
	if t != nil {
		_ = t.conn.Close() // makes read return
	}
}

// read passes packets to the recording until the tap is stopped.
func (t *tap) read(s sdp.Section) {
	names := map[byte]string{}
	for _, c := range s.Codecs {
		names[c.Type] = codecName(c.Name)
	}

	from := netip.AddrPortFrom(s.Address, uint16(s.Port))
	b := make([]byte, 2048)
	for {
		n, source, err := t.conn.ReadFromUDPAddrPort(b)
		if err != nil {
			return
		}
		if netip.AddrPortFrom(source.Addr().Unmap(), source.Port()) == from && !t.muted() {
			t.take(b[:n], names)
		}
	}
}

// codecName returns the name of a codec in the spelling of package calls.
func codecName(name string) string {
	for _, known := range []string{sdp.Opus, sdp.G722, sdp.PCMU, sdp.PCMA, sdp.Events} {
		if strings.EqualFold(name, known) {
			return known
		}
	}
	return ""
}

// take passes on one packet. RTP and sender reports of RTCP share a port (RFC 5761).
func (t *tap) take(b []byte, names map[byte]string) {
	if len(b) < 12 || b[0]>>6 != 2 {
		return
	}
	if isRTCP := b[1] >= 192 && b[1] <= 223; isRTCP {
		t.takeReport(b)
		return
	}

	payload := payloadOf(b)
	codec := names[b[1]&0x7f]
	if payload == nil || codec == "" {
		return
	}

	t.to.Packet(calls.Packet{
		Kind:    calls.Audio,
		Codec:   codec,
		Seq:     binary.BigEndian.Uint16(b[2:]),
		Time:    binary.BigEndian.Uint32(b[4:]),
		SSRC:    binary.BigEndian.Uint32(b[8:]),
		Arrived: time.Now(),
		Payload: payload,
	})
}

// payloadOf returns the payload of an RTP packet (RFC 3550, section 5.1), or nil if it is
// malformed.
func payloadOf(b []byte) []byte {
	at := 12 + 4*int(b[0]&15)
	if b[0]&0x10 != 0 { // a header extension
		if len(b) < at+4 {
			return nil
		}
		at += 4 + 4*int(binary.BigEndian.Uint16(b[at+2:]))
	}

	end := len(b)
	if b[0]&0x20 != 0 { // padding
		end -= int(b[len(b)-1])
	}
	if at > end {
		return nil
	}
	return b[at:end]
}

// takeReport passes on the clock of a sender report (RFC 3550, section 6.4.1).
func (t *tap) takeReport(b []byte) {
	if b[1] != 200 || len(b) < 28 {
		return
	}
	const since1900 = 2208988800 // seconds from 1900 to 1970
	seconds, fraction := binary.BigEndian.Uint32(b[8:]), binary.BigEndian.Uint32(b[12:])
	wall := time.Unix(int64(seconds)-since1900, int64(uint64(fraction)*1e9>>32))
	t.to.Clock(calls.Audio, binary.BigEndian.Uint32(b[16:]), wall)
}
