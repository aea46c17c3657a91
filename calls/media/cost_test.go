package media

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/srtp/v3"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/internal/fuzzcost"
)

// nacks returns a datagram that requests the 119 packets from last-122 to last-4, each of them many
// times.
func nacks(t testing.TB, ssrc uint32, last uint16) []byte {
	t.Helper()
	var packets []rtcp.Packet
	for range 44 {
		nack := &rtcp.TransportLayerNack{SenderSSRC: 9, MediaSSRC: ssrc}
		for i := range uint16(8) {
			first := last - 17*(i%7) - 20
			nack.Nacks = append(nack.Nacks, rtcp.NackPair{PacketID: first, LostPackets: 0xffff})
		}
		packets = append(packets, nack)
	}
	plain, err := rtcp.Marshal(packets)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

// unagreed returns transport-wide feedback, an extension that clients never negotiate. Its 40 bytes
// claim to describe 65,535 packets.
func unagreed() []byte {
	b := make([]byte, 20)
	b[0], b[1] = 0x8f, byte(rtcp.TypeTransportSpecificFeedback)
	binary.BigEndian.PutUint16(b[14:], 65535)
	for range 10 {
		b = binary.BigEndian.AppendUint16(b, 0x2000|8191)
	}
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)/4-1))
	return b
}

// TestRepeatBound shows that the engine repeats at most maxRepeated packets for one datagram, and
// none for the same request at the same time. It also shows that the bytes of repeated packets are
// limited. The engine may send one more packet, a request to the source of the media.
func TestRepeatBound(t *testing.T) {
	const profile = srtp.ProtectionProfileAeadAes128Gcm
	p := newPair(t, calls.Video, profile)
	_, to := p.linked()
	const size = 1150
	for _, b := range p.packets(t, 140, size) {
		p.worker.receiveDatagram(b, p.source, time.Now())
	}

	at := netip.MustParseAddrPort("192.0.2.2:5000")
	p.engine.table.claimAddress(at, to.transport, time.Now())
	to.transport.in.ctx = newContext(t, profile)
	client := newContext(t, profile)
	ask := func(now time.Time) (packets, bytes uint64) {
		t.Helper()
		sealed, err := client.EncryptRTCP(nil, nacks(t, to.out.ssrc, to.out.last.seq), nil)
		if err != nil {
			t.Fatal(err)
		}
		before := p.engine.Stats()
		p.worker.receiveDatagram(sealed, at, now)
		after := p.engine.Stats()
		return after.Sent - before.Sent, after.SentBytes - before.SentBytes
	}

	now := time.Now()
	if n, _ := ask(now); n == 0 || n > maxRepeated+1 {
		t.Errorf("one datagram repeats %d packets, want 1 to %d", n, maxRepeated+1)
	}
	if n, _ := ask(now); n > 1 {
		t.Errorf("the same request at the same time sends %d packets, want at most one, to the source", n)
	}
	var sum uint64
	for i := range 100 {
		_, bytes := ask(now.Add(time.Duration(i+1) * repeatAfter))
		sum += bytes
	}

	if most := uint64((burst + 3) * videoBytes / 2); sum == 0 || sum > most {
		t.Errorf("two seconds of requests repeat %d bytes, want 1 to %d", sum, most)
	}
}

// FuzzRTCP parses decrypted RTCP, whose content clients control.
func FuzzRTCP(f *testing.F) {
	f.Add(unagreed())
	f.Add(nacks(f, 1, 2))
	f.Add([]byte{0x80, 200, 0, 1, 0, 0, 0, 1})
	bound := fuzzcost.Bound{CPU: time.Millisecond, CPUPerByte: time.Microsecond, Heap: 16 << 10, PerByte: 64}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < maxPacket {
			bound.Check(t, len(b), func() { parseRTCP(b) })
		}
	})
}
