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
	asks := func(p rtcp.Packet) bool { _, ok := p.(*rtcp.PictureLossIndication); return ok }

	// Video that cannot be decoded by itself is held back, and the engine asks alice for a key
	// frame.
	alice.parts[0].await(t, "a request of the engine for a key frame", asks, func() {
		alice.parts[0].say(t, "\x10\x01delta")
	})
	got := hear(t, alice.parts[0], bob.parts[0], key)

	alice.parts[0].await(t, "bob's request for a key frame", asks,
		bob.parts[0].sending(t, &rtcp.PictureLossIndication{MediaSSRC: got.SSRC}))
	hear(t, alice.parts[0], bob.parts[0], "\x10\x01delta")
}

func TestRepeat(t *testing.T) {
	alice, bob := talk(t, newEngine(t), "video")
	first := hear(t, alice.parts[0], bob.parts[0], key)

	// Bob gets a packet again without asking alice. His client drops it as a duplicate, so the
	// engine's count shows that it was sent.
	before := bob.leg.Quality()
	must(t, bob.parts[0].pc.WriteRTCP([]rtcp.Packet{&rtcp.TransportLayerNack{MediaSSRC: first.SSRC,
		Nacks: rtcp.NackPairsFromSequenceNumbers([]uint16{first.SequenceNumber})}}))

	// The engine requests a packet that it never received from alice, by her own number.
	p := alice.parts[0]
	p.mu.Lock()
	p.seq++
	missing := p.seq
	p.mu.Unlock()
	p.say(t, key+"after") // sent once, so that the numbers are known
	var after *rtp.Packet
	for after == nil || string(after.Payload) != key+"after" {
		select {
		case after = <-bob.parts[0].packets:
		case <-time.After(deadline):
			t.Fatal("the packet after the lost one did not arrive")
		}
	}

	p.await(t, "bob's request for a lost packet", func(p rtcp.Packet) bool {
		nack, ok := p.(*rtcp.TransportLayerNack)
		return ok && slices.Contains(nack.Nacks[0].PacketList(), missing)
	}, bob.parts[0].sending(t, &rtcp.TransportLayerNack{MediaSSRC: first.SSRC,
		Nacks: rtcp.NackPairsFromSequenceNumbers([]uint16{after.SequenceNumber - 1})}))
	if lost := alice.leg.Quality().Lost; lost != 1 {
		t.Errorf("alice's client has lost %d packets, want 1", lost)
	}
	if before.Sent == 0 {
		t.Error("Quality().Sent is 0, want the packets to bob")
	}
}

func TestReports(t *testing.T) {
	alice, bob := talk(t, newEngine(t), "audio")
	began, packet := time.Now(), hear(t, alice.parts[0], bob.parts[0], "hello")
	source := uint32(alice.parts[0].sender.GetParameters().Encodings[0].SSRC)

	// A sender report arrives with the numbers of the stream that bob receives.
	const ntp = 0xe0000000_80000000
	bob.parts[0].await(t, "alice's sender report", func(p rtcp.Packet) bool {
		r, ok := p.(*rtcp.SenderReport)
		return ok && r.SSRC == packet.SSRC && r.NTPTime == ntp && r.RTPTime-packet.Timestamp < 48000*60 &&
			r.PacketCount > 0
	}, alice.parts[0].sending(t, &rtcp.SenderReport{SSRC: source, NTPTime: ntp, RTPTime: alice.parts[0].ts}))

	// A receiver report arrives with the numbers of the stream that alice sends.
	report := &rtcp.ReceiverReport{SSRC: 1, Reports: []rtcp.ReceptionReport{{
		SSRC: packet.SSRC, FractionLost: 64, LastSequenceNumber: uint32(packet.SequenceNumber),
		LastSenderReport: ntp >> 16 & 0xffffffff, Delay: 0}}}
	alice.parts[0].await(t, "bob's receiver report", func(p rtcp.Packet) bool {
		r, ok := p.(*rtcp.ReceiverReport)
		return ok && len(r.Reports) == 1 && r.Reports[0].SSRC == source && r.Reports[0].FractionLost == 64 &&
			uint16(r.Reports[0].LastSequenceNumber) <= alice.parts[0].seq && r.Reports[0].LastSequenceNumber>>16 == 0
	}, bob.parts[0].sending(t, report))
	q := bob.leg.Quality()
	if q.LostThere != 0.25 || q.RoundTrip <= 0 || q.RoundTrip > time.Since(began) {
		t.Errorf("Quality() = %+v, want a loss of 0.25 and a round trip", q)
	}
}

func TestBandwidth(t *testing.T) {
	alice, bob := talk(t, newEngine(t), "video")
	packet := hear(t, alice.parts[0], bob.parts[0], key)
	source := uint32(alice.parts[0].sender.GetParameters().Encodings[0].SSRC)
	for _, tt := range []struct{ estimated, want float32 }{{500_000, 500_000}, {9_000_000, 1_800_000}} {
		alice.parts[0].await(t, "bob's bandwidth", func(p rtcp.Packet) bool {
			r, ok := p.(*rtcp.ReceiverEstimatedMaximumBitrate)
			return ok && slices.Equal(r.SSRCs, []uint32{source}) && r.Bitrate > tt.want*0.95 && r.Bitrate <= tt.want
		}, bob.parts[0].sending(t, &rtcp.ReceiverEstimatedMaximumBitrate{
			Bitrate: tt.estimated, SSRCs: []uint32{packet.SSRC}}))
	}
}
