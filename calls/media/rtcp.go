package media

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/pion/rtcp"

	"github.com/selvage/selvage/calls"
)

const (
	maxSourcesRTCP = 8   // senders of RTCP in one section; each costs memory
	maxRepeated    = 128 // packets that one datagram may request again
)

// receiveRTCP handles an SRTCP packet from a client whose address has been verified. Reports and
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
	t.lastHeard.Store(now.UnixNano())

	s, budget := t.section, maxRepeated
	from := s.out.currentSource()
	many := from != nil && from.fan.Load() != nil
	var back []rtcp.Packet
	for _, p := range packets {
		switch p := p.(type) {
		case *rtcp.SenderReport:
			s.forwardReport(p, now)
			back = append(back, s.receiveReports(p.Reports, many, now)...)
		case *rtcp.ReceiverReport:
			back = append(back, s.receiveReports(p.Reports, many, now)...)
		case *rtcp.TransportLayerNack:
			back = append(back, s.resend(w.engine, p, &budget, now)...)
		case *rtcp.PictureLossIndication, *rtcp.FullIntraRequest:
			if from != nil {
				from.askKeyframe(now)
			}
		case *rtcp.ReceiverEstimatedMaximumBitrate:
			if many {
				s.limitBitrate(from, p, now)
			}
			back = append(back, p)
		}
	}

	if from != nil && len(back) > 0 {
		from.out.sendRTCP(w.engine, toSource(back, from)...)
	}
}

// decryptRTCP decrypts an RTCP packet.
func (w *worker) decryptRTCP(t *transport, b []byte, now time.Time) ([]rtcp.Packet, bool) {
	t.in.mu.Lock()
	defer t.in.mu.Unlock()
	ssrc := binary.BigEndian.Uint32(b[4:])
	known := slices.Contains(t.in.reporters, ssrc)
	if t.in.ctx == nil || !known && len(t.in.reporters) == maxSourcesRTCP || !t.in.rtcp.take(1, now) {
		return nil, false
	}

	plain, err := t.in.ctx.DecryptRTCP(w.plain[:0], b, nil)
	if err != nil {
		return nil, false
	}
	if !known {
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

// toSource replaces the SSRCs in reports and requests with the source's SSRCs.
func toSource(back []rtcp.Packet, from *section) []rtcp.Packet {
	source := from.source.Load()
	for _, p := range back {
		switch p := p.(type) {
		case *rtcp.ReceiverReport:
			p.SSRC = from.out.ssrc
			for i := range p.Reports {
				p.Reports[i].SSRC = source
			}
		case *rtcp.TransportLayerNack:
			p.SenderSSRC, p.MediaSSRC = from.out.ssrc, source
		case *rtcp.ReceiverEstimatedMaximumBitrate:
			p.SenderSSRC, p.SSRCs = from.out.ssrc, []uint32{source}
			p.Bitrate = min(p.Bitrate, maxBitrate)
		}
	}
	return back
}

// forwardReport forwards a sender report to the linked leg with our SSRC and timestamps, and to the
// recording unchanged.
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
func (o *sender) sendReport(from *section, p *rtcp.SenderReport, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.from != from || o.fromSSRC != p.SSRC || !o.started {
		return
	}
	o.reports.recordSent(uint32(p.NTPTime>>16), now)
	o.sendRTCPLocked(from.leg.engine, &rtcp.SenderReport{
		SSRC:        o.ssrc,
		NTPTime:     p.NTPTime,
		RTPTime:     p.RTPTime + o.timeOffset,
		PacketCount: uint32(o.sent),
		OctetCount:  o.octets,
	})
}

// receiveReports records from the client's report how well our stream arrives. It returns the
// report with the source's sequence numbers. If many clients receive the source, it returns
// nothing, because their reports would contradict each other.
func (s *section) receiveReports(blocks []rtcp.ReceptionReport, many bool, now time.Time) (back []rtcp.Packet) {
	o := &s.out
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, b := range blocks {
		if b.SSRC != o.ssrc {
			continue
		}
		o.reports.recordBlock(b, now)
		seq, ok := o.sourceSeq(uint16(b.LastSequenceNumber))
		if !ok || many {
			continue
		}
		b.LastSequenceNumber = o.from.extend(seq)
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

// resend resends packets that the client missed. It returns a request for packets that never
// arrived here, to be sent to their source (RFC 4585, section 6.2.1). It ignores requests for
// packets that are older than the history. These packets did arrive, and are no longer useful to a
// client. budget is the number of packets that the client may still request.
func (s *section) resend(e *Engine, p *rtcp.TransportLayerNack, budget *int, now time.Time) []rtcp.Packet {
	o := &s.out
	o.mu.Lock()
	defer o.mu.Unlock()
	if p.MediaSSRC != o.ssrc || o.history == nil || o.transport == nil {
		return nil
	}

	var missing []uint16
	source := o.from // nil between epochs
	for _, pair := range p.Nacks {
		pair.Range(func(seq uint16) bool {
			if *budget <= 0 {
				return false
			}
			*budget--
			if o.history.has(seq) {
				if sealed := o.history.take(seq, now); sealed != nil {
					o.write(e, sealed)
				}
			} else if at, ok := o.sourceSeq(seq); ok && o.isRecent(seq) && source.requests.allow(at, now) {
				missing = append(missing, at)
			}
			return true
		})
	}

	if len(missing) == 0 {
		return nil
	}
	return []rtcp.Packet{&rtcp.TransportLayerNack{Nacks: rtcp.NackPairsFromSequenceNumbers(missing)}}
}

// sendRTCP sends packets to the client about the stream that the client sends.
func (o *sender) sendRTCP(e *Engine, packets ...rtcp.Packet) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sendRTCPLocked(e, packets...)
}

// sendRTCPLocked sends a compound packet, which begins with a report (RFC 3550, section 6.1). The
// caller holds mu.
func (o *sender) sendRTCPLocked(e *Engine, packets ...rtcp.Packet) {
	if o.ctx == nil || o.transport.port != nil && !o.format.Mux {
		return // some phones treat RTCP on their RTP port as audio
	}
	switch packets[0].(type) {
	case *rtcp.SenderReport, *rtcp.ReceiverReport:
	default:
		packets = slices.Insert(packets, 0, rtcp.Packet(&rtcp.ReceiverReport{SSRC: o.ssrc}))
	}
	packets = append(packets, rtcp.NewCNAMESourceDescription(o.ssrc, o.section.leg.name))

	plain, err := rtcp.Marshal(packets)
	if err != nil {
		return
	}
	sealed, err := o.ctx.EncryptRTCP(nil, plain, nil)
	if err != nil {
		return
	}
	o.write(e, sealed)
}

// reports holds what a client reports about our stream.
type reports struct {
	lastReport uint32 // middle bits of the NTP time of our last sender report
	lastAt     time.Time
	roundTrip  time.Duration
	lost       float64
}

// recordSent records that a sender report was sent.
func (r *reports) recordSent(middle uint32, now time.Time) { r.lastReport, r.lastAt = middle, now }

// recordBlock records a report block (RFC 3550, section 6.4.1).
func (r *reports) recordBlock(b rtcp.ReceptionReport, now time.Time) {
	r.lost = float64(b.FractionLost) / 256
	if b.LastSenderReport == 0 || b.LastSenderReport != r.lastReport {
		return
	}
	delay := time.Duration(b.Delay) * time.Second / 65536
	r.roundTrip = max(0, now.Sub(r.lastAt)-delay)
}

// quality fills in the fields of q that come from reports.
func (r *reports) quality(q *calls.Quality) {
	q.RoundTrip, q.LostThere = r.roundTrip, r.lost
}
