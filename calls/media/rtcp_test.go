package media_test

import (
	"slices"
	"testing"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"
)

// await waits for an RTCP packet for which fits returns true. Because packets may be lost, it calls
// repeat every 20 ms, just as clients repeat their packets.
func (p *part) await(t *testing.T, what string, fits func(rtcp.Packet) bool, repeat func()) {
	t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for end := time.After(deadline); ; {
		select {
		case <-ticker.C:
			repeat()
		case packets := <-p.reports:
			if slices.ContainsFunc(packets, fits) {
				return
			}
		case <-end:
			t.Fatalf("the client does not get %s", what)
		}
	}
}

// sending returns a function that sends an RTCP packet.
func (p *part) sending(t *testing.T, packet rtcp.Packet) func() {
	return func() { must(t, p.pc.WriteRTCP([]rtcp.Packet{packet})) }
}

func TestKeyframeRequest(t *testing.T) {
	alice, bob := talk(t, newEngine(t), "video")
	from, to := alice.parts[0], bob.parts[0]
	const delta = "\x10\x01delta" // cannot be decoded without a key frame
	isRequest := func(p rtcp.Packet) bool {
		_, ok := p.(*rtcp.PictureLossIndication)
		return ok
	}

	// Video that cannot be decoded by itself is held back, and the engine asks alice for a key
	// frame.
	from.await(t, "the engine's request for a key frame", isRequest, func() { from.say(t, delta) })
	got := hear(t, from, to, key)

	request := &rtcp.PictureLossIndication{MediaSSRC: got.SSRC}
	from.await(t, "bob's request for a key frame", isRequest, to.sending(t, request))
	hear(t, from, to, delta)
}

// nack returns a request for a packet of a stream.
func nack(ssrc uint32, number uint16) *rtcp.TransportLayerNack {
	pairs := rtcp.NackPairsFromSequenceNumbers([]uint16{number})
	return &rtcp.TransportLayerNack{MediaSSRC: ssrc, Nacks: pairs}
}

func TestRepeat(t *testing.T) {
	alice, bob := talk(t, newEngine(t), "video")
	first := hear(t, alice.parts[0], bob.parts[0], key)

	// Bob requests a packet that he has received. His client drops the duplicate, so the test
	// cannot see whether the engine sends it.
	before := bob.leg.Quality()
	again := nack(first.SSRC, first.SequenceNumber)
	must(t, bob.parts[0].pc.WriteRTCP([]rtcp.Packet{again}))

	// The engine requests a packet that it never received from alice, by her own number.
	from := alice.parts[0]
	from.mu.Lock()
	from.seq++
	missing := from.seq
	from.mu.Unlock()
	from.say(t, key+"after") // sent once, so that the numbers are known
	var after *rtp.Packet
	for after == nil || string(after.Payload) != key+"after" {
		select {
		case after = <-bob.parts[0].packets:
		case <-time.After(deadline):
			t.Fatal("the packet after the lost one did not arrive")
		}
	}

	namesMissing := func(p rtcp.Packet) bool {
		request, ok := p.(*rtcp.TransportLayerNack)
		return ok && slices.Contains(request.Nacks[0].PacketList(), missing)
	}
	lost := nack(first.SSRC, after.SequenceNumber-1)
	from.await(t, "bob's request for a lost packet", namesMissing, bob.parts[0].sending(t, lost))
	if n := alice.leg.Quality().Lost; n != 1 {
		t.Errorf("%d packets of alice's client are lost, want 1", n)
	}
	if before.Sent == 0 {
		t.Error("Quality().Sent is 0, want the packets to bob")
	}
}

func TestReports(t *testing.T) {
	alice, bob := talk(t, newEngine(t), "audio")
	began := time.Now()
	from, to := alice.parts[0], bob.parts[0]
	packet := hear(t, from, to, "hello")
	source := uint32(from.sender.GetParameters().Encodings[0].SSRC)

	// A sender report arrives with the numbers of the stream that bob receives.
	const ntp = 0xe0000000_80000000
	sent := &rtcp.SenderReport{SSRC: source, NTPTime: ntp, RTPTime: from.ts}
	isSenderReport := func(p rtcp.Packet) bool {
		r, ok := p.(*rtcp.SenderReport)
		return ok && r.SSRC == packet.SSRC && r.NTPTime == ntp && r.PacketCount > 0 &&
			r.RTPTime-packet.Timestamp < 48000*60
	}
	to.await(t, "alice's sender report", isSenderReport, from.sending(t, sent))

	// A receiver report arrives with the numbers of the stream that alice sends.
	received := &rtcp.ReceiverReport{
		SSRC: 1,
		Reports: []rtcp.ReceptionReport{{
			SSRC:               packet.SSRC,
			FractionLost:       64,
			LastSequenceNumber: uint32(packet.SequenceNumber),
			LastSenderReport:   ntp >> 16 & 0xffffffff,
		}},
	}
	isReceiverReport := func(p rtcp.Packet) bool {
		r, ok := p.(*rtcp.ReceiverReport)
		if !ok || len(r.Reports) != 1 {
			return false
		}
		report := r.Reports[0]
		return report.SSRC == source && report.FractionLost == 64 && report.LastSequenceNumber <= uint32(from.seq)
	}
	from.await(t, "bob's receiver report", isReceiverReport, to.sending(t, received))

	quality := bob.leg.Quality()
	if quality.LostThere != 0.25 {
		t.Errorf("Quality().LostThere = %v, want 0.25", quality.LostThere)
	}
	if limit := time.Since(began); quality.RoundTrip <= 0 || quality.RoundTrip > limit {
		t.Errorf("Quality().RoundTrip = %v, want more than 0 and at most %v", quality.RoundTrip, limit)
	}
}

func TestBandwidth(t *testing.T) {
	alice, bob := talk(t, newEngine(t), "video")
	from, to := alice.parts[0], bob.parts[0]
	packet := hear(t, from, to, key)
	source := uint32(from.sender.GetParameters().Encodings[0].SSRC)
	for _, tt := range []struct{ estimated, want float32 }{
		{500_000, 500_000},
		{9_000_000, 1_800_000},
	} {
		estimate := &rtcp.ReceiverEstimatedMaximumBitrate{Bitrate: tt.estimated, SSRCs: []uint32{packet.SSRC}}
		isEstimate := func(p rtcp.Packet) bool {
			r, ok := p.(*rtcp.ReceiverEstimatedMaximumBitrate)
			return ok && slices.Equal(r.SSRCs, []uint32{source}) && r.Bitrate > tt.want*0.95 && r.Bitrate <= tt.want
		}
		from.await(t, "bob's bandwidth", isEstimate, to.sending(t, estimate))
	}
}
