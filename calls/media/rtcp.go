package media

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/pion/rtcp"
)

const (
	maxSourcesRTCP = 8   // senders of RTCP in one section; each costs memory
	maxRepeated    = 128 // packets that one datagram may request again
)

// receiveRTCP handles an SRTCP datagram from a client whose address has been verified. Reports and
// requests about media that the client receives go to the media's source, with the source's SSRCs
// and sequence numbers. Reports about media that the client sends go to the clients that receive
// it. Outside of rooms, the engine creates no sender reports of its own, so a leg without a link
// receives none.
func (w *worker) receiveRTCP(t *transport, b []byte, now time.Time) {
	packets, ok := w.decryptRTCP(t, b, now)
	if !ok {
		w.engine.counters.dropped.Add(1)
		return
	}
	t.lastHeard.Store(stamp(now))

	s := t.section
	from := s.out.currentSource() // nil between epochs
	inRoom := from != nil && from.fan.Load() != nil
	repeatsLeft := maxRepeated
	var back []rtcp.Packet // to the source
	for _, p := range packets {
		switch p := p.(type) {
		case *rtcp.SenderReport:
			s.forwardReport(p, now)
			back = append(back, s.receiveReports(p.Reports, inRoom, now)...)
		case *rtcp.ReceiverReport:
			back = append(back, s.receiveReports(p.Reports, inRoom, now)...)
		case *rtcp.TransportLayerNack:
			missing := s.resend(w.engine, p, &repeatsLeft, now)
			if len(missing) > 0 {
				back = append(back, requestFor(missing))
			}
		case *rtcp.PictureLossIndication, *rtcp.FullIntraRequest:
			if from != nil {
				from.askKeyframe(now)
			}
		case *rtcp.ReceiverEstimatedMaximumBitrate:
			if inRoom {
				s.limitBitrate(from, p, now)
			}
			back = append(back, p)
		}
	}

	if from != nil && len(back) > 0 {
		addressToSource(back, from)
		from.out.sendRTCP(w.engine, back...)
	}
}

// decryptRTCP decrypts a datagram and returns the packets in it that the engine uses.
func (w *worker) decryptRTCP(t *transport, b []byte, now time.Time) ([]rtcp.Packet, bool) {
	t.in.mu.Lock()
	defer t.in.mu.Unlock()
	ssrc := binary.BigEndian.Uint32(b[4:])
	isKnown := slices.Contains(t.in.reporters, ssrc)
	if t.in.ctx == nil || !isKnown && len(t.in.reporters) == maxSourcesRTCP {
		return nil, false
	}
	if !t.in.rtcp.take(1, now) {
		return nil, false
	}

	plain, err := t.in.ctx.DecryptRTCP(w.plain[:0], b, nil)
	if err != nil {
		return nil, false
	}
	if !isKnown {
		t.in.reporters = append(t.in.reporters, ssrc)
	}
	return parseRTCP(plain)
}

// parseRTCP parses a datagram, and returns the packets that the engine uses. It skips all others,
// because some kinds are small but expand to a lot of memory.
func parseRTCP(b []byte) (packets []rtcp.Packet, ok bool) {
	for len(b) > 0 {
		var h rtcp.Header
		if err := h.Unmarshal(b); err != nil {
			return nil, false
		}

		size := 4 * (int(h.Length) + 1)
		if size > len(b) {
			return nil, false
		}

		if p := newRTCP(h); p != nil {
			if err := p.Unmarshal(b[:size]); err != nil {
				return nil, false
			}
			packets = append(packets, p)
		}
		b = b[size:]
	}
	return packets, true
}

// newRTCP returns an empty packet of the kind in h. It returns nil if the engine does not use this
// kind.
func newRTCP(h rtcp.Header) rtcp.Packet {
	switch h.Type {
	case rtcp.TypeSenderReport:
		return &rtcp.SenderReport{}
	case rtcp.TypeReceiverReport:
		return &rtcp.ReceiverReport{}
	case rtcp.TypeTransportSpecificFeedback:
		if h.Count == rtcp.FormatTLN {
			return &rtcp.TransportLayerNack{}
		}
	case rtcp.TypePayloadSpecificFeedback:
		switch h.Count {
		case rtcp.FormatPLI:
			return &rtcp.PictureLossIndication{}
		case rtcp.FormatFIR:
			return &rtcp.FullIntraRequest{}
		case rtcp.FormatREMB:
			return &rtcp.ReceiverEstimatedMaximumBitrate{}
		}
	}
	return nil
}

// addressToSource replaces the SSRCs in reports and requests with the source's SSRCs. It also limits
// the bit rate that the client requests.
func addressToSource(back []rtcp.Packet, from *section) {
	source := from.source.Load()
	for _, p := range back {
		switch p := p.(type) {
		case *rtcp.ReceiverReport:
			p.SSRC = from.out.ssrc
			for i := range p.Reports {
				p.Reports[i].SSRC = source
			}
		case *rtcp.TransportLayerNack:
			p.SenderSSRC = from.out.ssrc
			p.MediaSSRC = source
		case *rtcp.ReceiverEstimatedMaximumBitrate:
			p.SenderSSRC = from.out.ssrc
			p.SSRCs = []uint32{source}
			p.Bitrate = min(p.Bitrate, maxBitrate)
		}
	}
}

// forwardReport forwards a sender report to all legs that receive the stream, with our SSRC and
// timestamps, and to the recording with the client's own timestamps.
func (s *section) forwardReport(p *rtcp.SenderReport, now time.Time) {
	if p.SSRC != s.source.Load() {
		return
	}
	if tap := s.leg.tap.Load(); tap != nil && !s.leg.muted(s.kind).Load() {
		(*tap).Clock(s.kind, p.RTPTime, ntpTime(p.NTPTime))
	}
	if r := s.route.Load(); r != nil {
		r.to.out.sendReport(s, p, now)
	}
	if fan := s.fan.Load(); fan != nil {
		for _, r := range *fan {
			r.to.out.sendReport(s, p, now)
		}
	}
}

// ntpTime converts an NTP timestamp (RFC 3550, section 4) to a time.
func ntpTime(ntp uint64) time.Time {
	const since1900 = 2_208_988_800 // seconds from 1900 to 1970
	seconds := int64(ntp>>32) - since1900
	return time.Unix(seconds, int64(ntp&0xffffffff*1e9>>32))
}

// sendReport sends a sender report from the source to the client.
func (out *sender) sendReport(from *section, p *rtcp.SenderReport, now time.Time) {
	out.mu.Lock()
	defer out.mu.Unlock()
	if out.epoch.from != from || out.epoch.fromSSRC != p.SSRC || !out.last.started {
		return
	}
	out.reports.recordSent(uint32(p.NTPTime>>16), now)
	out.sendRTCPLocked(from.leg.engine, &rtcp.SenderReport{
		SSRC:        out.ssrc,
		NTPTime:     p.NTPTime,
		RTPTime:     p.RTPTime + out.epoch.timeOffset,
		PacketCount: uint32(out.sent),
		OctetCount:  out.octets,
	})
}

// receiveReports records how well our stream arrives, according to the client's report. It returns
// the report with the source's sequence numbers. In a room, it returns nothing: many clients receive
// the source's stream, and their reports would contradict each other.
func (s *section) receiveReports(
	blocks []rtcp.ReceptionReport, inRoom bool, now time.Time,
) (back []rtcp.Packet) {
	out := &s.out
	out.mu.Lock()
	defer out.mu.Unlock()
	for _, b := range blocks {
		if b.SSRC != out.ssrc {
			continue
		}
		out.reports.recordBlock(b, now)
		if inRoom {
			continue
		}
		seq, ok := out.epoch.sourceSeq(uint16(b.LastSequenceNumber))
		if !ok {
			continue
		}
		b.LastSequenceNumber = out.epoch.from.extend(seq)
		back = append(back, &rtcp.ReceiverReport{Reports: []rtcp.ReceptionReport{b}})
	}
	return back
}

// extend returns a 16-bit sequence number with its roll-overs in the upper bits. It assumes that
// the number is close to the highest one received.
func (s *section) extend(seq uint16) uint32 {
	high := s.highest.Load()
	return high + uint32(int32(int16(seq-uint16(high))))
}

// resend resends packets that the client missed. It returns the source's sequence numbers of the
// packets that never arrived here. The engine must request them from their source (RFC 4585,
// section 6.2.1). resend ignores requests for packets that are older than the history. These
// packets did arrive, and are no longer useful to a client. It decreases repeatsLeft, the number of
// packets that the client may still request.
func (s *section) resend(
	e *Engine, p *rtcp.TransportLayerNack, repeatsLeft *int, now time.Time,
) (missing []uint16) {
	out := &s.out
	out.mu.Lock()
	defer out.mu.Unlock()
	if p.MediaSSRC != out.ssrc || out.history == nil || out.client.transport == nil {
		return nil
	}

	for _, pair := range p.Nacks {
		for _, seq := range pair.PacketList() {
			if *repeatsLeft <= 0 {
				return missing
			}
			*repeatsLeft--
			if out.history.has(seq) {
				out.repeat(e, seq, now)
				continue
			}
			sourceSeq, ok := out.epoch.sourceSeq(seq)
			if ok && out.isRecent(seq) && out.epoch.from.requests.allow(sourceSeq, now) {
				missing = append(missing, sourceSeq)
			}
		}
	}
	return missing
}

// repeat sends a packet from the history again, unless the limits for repetitions forbid it. The
// caller holds mu.
func (out *sender) repeat(e *Engine, seq uint16, now time.Time) {
	if sealed := out.history.take(seq, now); sealed != nil {
		out.write(e, sealed)
	}
}

// requestFor returns a request to resend packets.
func requestFor(missing []uint16) rtcp.Packet {
	return &rtcp.TransportLayerNack{Nacks: rtcp.NackPairsFromSequenceNumbers(missing)}
}

// sendRTCP sends packets to the client about the stream that the client sends.
func (out *sender) sendRTCP(e *Engine, packets ...rtcp.Packet) {
	out.mu.Lock()
	defer out.mu.Unlock()
	out.sendRTCPLocked(e, packets...)
}

// sendRTCPLocked sends a compound packet, which begins with a report (RFC 3550, section 6.1). The
// caller holds mu.
func (out *sender) sendRTCPLocked(e *Engine, packets ...rtcp.Packet) {
	if out.client.cipher == nil {
		return
	}
	isPhone := out.client.transport.port != nil
	if isPhone && !out.client.format.Mux {
		return // some phones treat RTCP on their RTP port as audio
	}
	switch packets[0].(type) {
	case *rtcp.SenderReport, *rtcp.ReceiverReport:
	default:
		packets = slices.Insert(packets, 0, rtcp.Packet(&rtcp.ReceiverReport{SSRC: out.ssrc}))
	}
	packets = append(packets, rtcp.NewCNAMESourceDescription(out.ssrc, out.section.leg.name))

	plain, err := rtcp.Marshal(packets)
	if err != nil {
		return
	}
	sealed, err := out.client.cipher.EncryptRTCP(nil, plain, nil)
	if err != nil {
		return
	}
	out.write(e, sealed)
}
